"""The process of one cluster: reads a request from standard input, writes stages and results to standard output.

It ends when its parent ends; its folder is then removed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from stacks.validation.processes import end_from_outside


def main() -> None:
    # Standard output is for messages only: the program and its imports may print.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    if os.getsid(0) != os.getpid():
        # At the end it kills its session, which must not be a shell's.
        os.setsid()
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, args=(Path(request["folder"]),), daemon=True).start()
    from stacks.validation import run  # noqa: PLC0415 - order: the engine's libraries, after the watch on the parent

    _tell(out, run.run(run.Request(**request), lambda message: _tell(out, message)))
    # The engine's libraries have threads that the interpreter would wait for.
    os._exit(0)


def _tell(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")


def _end_with_parent(folder: Path) -> None:
    """Wait for standard input to close, which happens even if the parent is killed, then end this session."""
    while sys.stdin.readline():
        pass
    end_from_outside(os.getpid(), folder)


if __name__ == "__main__":
    main()
