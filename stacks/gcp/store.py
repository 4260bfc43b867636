"""Google's Secret Manager as the store, as hosts see it.

Sources, by page title: "View and query VM metadata" (503 passes) and "Authenticate workloads to Google Cloud APIs using
service accounts"; "Method: projects.secrets.versions.access" and "SecretPayload" (base64, at most 64 KiB).

The payload's CRC32C is not compared: TLS vouches for every byte on the way, a host's payload has its own SHA-256, and
Python's standard library has no CRC32C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = Path(__file__).with_name("menagerie_secret.py")
_PLAIN, _STORED = ".", "_"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")


@dataclass(frozen=True)
class GcpStore:
    """See `userdata.stores`. `project` is the ID of the project that holds the secrets. No URL has a slash at its end."""

    project: str
    cluster: str
    url: str = "https://secretmanager.googleapis.com"
    metadata: str = "http://169.254.169.254"

    def stored_name(self, name: str) -> str:
        """`name` in Secret Manager: `menagerie_<cluster>_<name>`, with `_` for `.`. Raises ValueError if it can't be one.

        "CreateSecretRequest" allows letters, digits, hyphens and underscores, up to 255.
        """
        stored = self._prefix + name.replace(_PLAIN, _STORED)
        if not _NAME.fullmatch(stored) or self.plain_name(stored) != name:
            raise ValueError(f"{name!r} can't be the name of a secret of Google Cloud")
        return stored

    def plain_name(self, stored: str) -> str:
        """The inverse of `stored_name`."""
        return stored.removeprefix(self._prefix).replace(_STORED, _PLAIN)

    def script(self) -> str:
        text = _PROGRAM.read_text()
        filled = {
            "METADATA_URL": self.metadata,
            "STORE_URL": self.url,
            "NAME_PREFIX": f"/v1/projects/{self.project}/secrets/{self._prefix}",
            "NAME_OLD": _PLAIN,
            "NAME_NEW": _STORED,
        }
        for placeholder, value in filled.items():
            text = text.replace(placeholder, value)
        return text

    @property
    def _prefix(self) -> str:
        return f"menagerie_{self.cluster}_"
