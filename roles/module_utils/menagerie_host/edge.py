"""Access to a host's files and tools, for programs that set its links."""

from __future__ import annotations

import os
import shutil
import subprocess


class Edge:
    """root: where the host's files are, for tests."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str | None:
        """Return the stripped text; None without the file, or if reading fails (EINVAL for a port that is down)."""
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
        """Return the base name of a symbolic link's target; "" without a link."""
        return os.path.basename(os.path.realpath(self.at(path))) if os.path.lexists(self.at(path)) else ""

    def has(self, command: str) -> bool:
        return shutil.which(command) is not None

    def run(self, *words: str) -> tuple[int, str]:
        """Return (exit code, output). OSError without the tool, subprocess.TimeoutExpired after 60 s."""
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr
