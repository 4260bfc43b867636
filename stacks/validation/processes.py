"""A process that validates one cluster; ends it together with everything it started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stacks.validation import private

_TAIL = 400


class Worker:
    """``python -m stacks.validation.worker`` in its own session: a Ctrl-C at the terminal does not reach it; we end it.

    log: a file for its standard error.
    """

    def __init__(self, request: dict[str, object], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "stacks.validation.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=private.importing(private.variables(os.environ)),
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        # Kept open: when it closes, the worker knows that this process is gone.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the worker's messages until it ends, without an incomplete last line."""
        assert self._process.stdout is not None
        yield from (json.loads(line) for line in self._process.stdout if line.endswith("\n"))

    def last_words(self) -> str:
        """Return the end of the worker's standard error."""
        self._process.wait()
        text = self._log.read_text(errors="replace").strip()
        return text[-_TAIL:] or f"no output, exit status {self._process.returncode}"

    def end(self) -> None:
        """Kill it and everything it started: nothing of it is worth keeping."""
        end_session(self._process.pid)
        self._process.wait()


def end_session(leader: int) -> None:
    """Kill every process of a session. The engine's plugins have their own process groups."""
    while members := _members(leader):
        for process in members:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


def end_from_outside(leader: int, folder: Path) -> None:
    """Start a process that ends a session, possibly our own, and removes its folder and the parent folder."""
    command = [sys.executable, "-P", "-m", "stacks.validation.processes", str(leader), str(folder)]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def _end_and_remove(leader: int, folder: Path) -> None:
    end_session(leader)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # not empty: other clusters still use it
        folder.parent.rmdir()


def _members(leader: int) -> set[int]:
    pids = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # proc(5): "pid (comm) state ppid pgrp session ..."; comm may contain spaces and brackets.
            state, _, _, session = entry.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                pids.add(int(entry.parent.name))
    return pids


if __name__ == "__main__":
    _end_and_remove(int(sys.argv[1]), Path(sys.argv[2]))
