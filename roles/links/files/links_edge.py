"""Everything that `menagerie-links` touches of the host, but for packets (links_ways.py). Standard library only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, NamedTuple

NET, PCI = "/sys/class/net", "/sys/bus/pci/devices"


class Refused(Exception):
    """Why a link isn't to be had, with the code of docs/errors.md."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Finding(NamedTuple):
    """Something that isn't as wanted. waits: it may only be that another machine of the fleet isn't set yet."""

    code: str
    link: str
    text: str
    waits: bool = False


class Edge:
    """The host's files and tools."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str | None:
        """Text without its last newline. None where there is no such file, or it says nothing (carrier of a port that is down)."""
        try:
            with open(self._at(path)) as handle:
                return handle.read().strip()
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._at(path)))
        except OSError:
            return []

    def target(self, path: str) -> str:
        """Last name of where a symbolic link leads; "" without one."""
        return os.path.basename(os.path.realpath(self._at(path))) if os.path.lexists(self._at(path)) else ""

    def has(self, command: str) -> bool:
        return shutil.which(command) is not None

    def run(self, *words: str) -> tuple[int, str]:
        """(exit code, what it said)."""
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return 127, str(error)
        return done.returncode, done.stdout + done.stderr

    def ip(self, *words: str) -> list[dict[str, Any]]:
        """What ip(8) says as JSON; nothing where it fails."""
        code, said = self.run("ip", "-json", *words)
        try:
            return list(json.loads(said or "[]")) if code == 0 else []
        except ValueError:
            return []
