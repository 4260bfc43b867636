"""Access of `menagerie-links` to the host, except for packets (ways.py)."""

from __future__ import annotations

import json
import subprocess
from typing import Any, NamedTuple

from menagerie_host import edge

NET, PCI = "/sys/class/net", "/sys/bus/pci/devices"


class Refused(Exception):
    """A link can't be set. code: its error's, in docs/reference/errors.md."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Finding(NamedTuple):
    """Something that isn't as wanted. waits: perhaps only because another machine of the fleet isn't set yet."""

    code: str
    link: str
    text: str
    waits: bool = False


class Edge(edge.Edge):
    def run(self, *words: str) -> tuple[int, str]:
        """Return (exit code, output); 127 if the command can't run."""
        try:
            return super().run(*words)
        except (OSError, subprocess.TimeoutExpired) as error:
            return 127, str(error)

    def ip(self, *words: str) -> list[dict[str, Any]]:
        """Return JSON from ip(8); nothing if it fails."""
        code, said = self.run("ip", "-json", *words)
        try:
            return list(json.loads(said or "[]")) if code == 0 else []
        except ValueError:
            return []
