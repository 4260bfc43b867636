"""``python -m cli``: what the executable at the root of the checkout runs."""

import os
import sys

from cli import exits
from cli.running import run

code = run(sys.argv[1:])
if code == exits.INTERRUPTED:
    # Threads of the engines' libraries may still be at work, and the interpreter would wait for them.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
sys.exit(code)
