"""``python -m cli``: what the executable at the root of the checkout runs, and an installed `menagerie`."""

import io
import os
import sys

for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # an ASCII terminal gets \\u2192 for →

from cli import exits, spelling
from cli.output import flushed
from cli.running import run

spelling.adapt()
code = flushed(run(sys.argv[1:]))
if code == exits.INTERRUPTED:
    # Do not wait for threads of the engines' libraries that may still run.
    os._exit(code)
sys.exit(code)
