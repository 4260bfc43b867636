"""This host's payload, as the boot program keeps it, and the change to another one."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from .surgery import Units
from .system import Failure

KEPT = Path("/var/lib/menagerie")
HANDED = Path("/run/menagerie-agent")
WORK_S = 2700
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Payload:
    """`kept`: the boot program's folder. `handed`: where menagerie-apply finds a payload that an operator sent.

    The agent is confined, and ends when menagerie-apply restarts it. So a separate unit does the work. It asks the
    store which payload is assigned to this host, and accepts no other.
    """

    def __init__(self, units: Units, kept: Path = KEPT, handed: Path = HANDED) -> None:
        self._units, self._kept, self._handed = units, kept, handed

    def state(self) -> dict[str, Any]:
        """`sha256` of the payload; `whole`: whether it is applied completely, and nothing of another is left."""
        sha256, name = (self._kept / "payload.sha256").read_text().split()
        return {"sha256": sha256, "whole": [name] == self._names()}

    def config(self) -> dict[str, Any]:
        """Return the payload itself."""
        name = (self._kept / "payload.sha256").read_text().split()[1]
        payload: dict[str, Any] = json.loads((self._kept / name).read_text())
        return payload

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """{sha256, packed: by `userdata.payload.packed`}: change to this payload, and wait until it is whole."""
        sha256 = str(body["sha256"])
        if not _SHA256.fullmatch(sha256):
            raise ValueError("sha256 is not 64 hexadecimal digits")
        desired = {"sha256": sha256, "whole": True}
        if self.state() != desired:
            self._run(f"menagerie-apply@{sha256}.service", f"payload-{sha256[:16]}", str(body["packed"]))
        if self.state() != desired:
            raise Failure(f"menagerie-apply ended, but this host does not have payload {sha256[:16]}")
        return desired

    def _run(self, unit: str, name: str, packed: str) -> None:
        if not self._units.is_active(unit):
            self._units.stop("menagerie-apply@*.service")
            new = self._handed / (name + ".new")
            new.write_text(packed)
            os.replace(str(new), str(self._handed / name))
        try:
            self._units.run(unit, WORK_S)
        except Failure as failure:
            said = self._kept / "apply.failed"
            raise Failure(said.read_text() if said.exists() else str(failure)) from None

    def _names(self) -> list[str]:
        """Return the payloads on the disk; during a change there are two."""
        return sorted(path.name for path in self._kept.glob("payload-" + "?" * 16))
