"""``python -m cli``: what the executable at the root of the checkout runs."""

import io
import os
import sys

for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a terminal in ASCII: → is written as \\u2192

from cli import exits
from cli.output import flushed
from cli.running import run

code = flushed(run(sys.argv[1:]))
if code == exits.INTERRUPTED:
    # Threads of the engines' libraries may still be at work, and the interpreter would wait for them.
    os._exit(code)
sys.exit(code)
