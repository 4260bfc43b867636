"""The command of an installed wheel, in which the checkout's folders are below this package: ``menagerie/cli``, ``menagerie/roles``.

Here it is `tools/command.py`; pyproject.toml puts it into the wheel as ``menagerie/__init__.py``.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the command. Programs that it starts find the packages, and nothing in the folder that they are started in."""
    root = str(Path(__file__).resolve().parent)
    sys.path.insert(0, root)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    os.environ["PYTHONSAFEPATH"] = "1"
    runpy.run_module("cli", run_name="__main__", alter_sys=True)
