"""The lab's store, as hosts see it; `sandbox.lab.store_server` is the server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROGRAM = Path(__file__).with_name("menagerie_secret.py")


@dataclass(frozen=True)
class LabStore:
    """See `components.userdata.stores`. The store answers over HTTP on its own network. `url` has no trailing slash."""

    url: str

    def script(self) -> str:
        return _PROGRAM.read_text().replace("STORE_URL", self.url)
