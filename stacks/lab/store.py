"""The lab's store, as hosts see it: `sandbox.lab.store_server` is the other end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROGRAM = Path(__file__).with_name("menagerie_secret.py")


@dataclass(frozen=True)
class LabStore:
    """See `components.userdata.stores`. The store answers over HTTP on a network of its own. `url` has no slash at its end."""

    url: str

    def script(self) -> str:
        return _PROGRAM.read_text().replace("STORE_URL", self.url)
