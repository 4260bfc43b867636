"""Everything that `menagerie-links` touches of the host, but for packets (ways.py)."""

from __future__ import annotations

import json
import subprocess
from typing import Any, NamedTuple

from menagerie_host import edge

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


class Edge(edge.Edge):
    def run(self, *words: str) -> tuple[int, str]:
        """(exit code, what it said); 127 where it can't be asked."""
        try:
            return super().run(*words)
        except (OSError, subprocess.TimeoutExpired) as error:
            return 127, str(error)

    def ip(self, *words: str) -> list[dict[str, Any]]:
        """What ip(8) says as JSON; nothing where it fails."""
        code, said = self.run("ip", "-json", *words)
        try:
            return list(json.loads(said or "[]")) if code == 0 else []
        except ValueError:
            return []
