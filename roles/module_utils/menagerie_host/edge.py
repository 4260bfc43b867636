"""The files and tools of a host, as programs that set its links see them."""

from __future__ import annotations

import os
import shutil
import subprocess


class Edge:
    """root: where its files are; a test has them elsewhere."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str | None:
        """Text without its last newline. None without such a file, or where it says nothing (EINVAL of a port that is down)."""
        try:
            with open(self.at(path)) as handle:
                return handle.read().strip()
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def target(self, path: str) -> str:
        """Last name of where a symbolic link leads; "" without one."""
        return os.path.basename(os.path.realpath(self.at(path))) if os.path.lexists(self.at(path)) else ""

    def has(self, command: str) -> bool:
        return shutil.which(command) is not None

    def run(self, *words: str) -> tuple[int, str]:
        """(exit code, what it said). OSError without such a tool, subprocess.TimeoutExpired after 60 s."""
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr
