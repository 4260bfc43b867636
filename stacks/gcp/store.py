"""Google's Secret Manager as the store, as hosts see it.

Sources, by page title: "View and query VM metadata" (503 is transient) and "Authenticate workloads to Google Cloud APIs
using service accounts"; "Method: projects.secrets.versions.access" and "SecretPayload" (base64, at most 64 KiB).

The payload's CRC32C is not verified: TLS protects every byte in transit, a host's payload has its own SHA-256, and
Python's standard library has no CRC32C.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from stacks.cloud_store import CloudStore


@dataclass(frozen=True)
class GcpStore(CloudStore):
    """See `components.userdata.stores`. `project` is the ID of the project with the secrets. URLs have no trailing slash."""

    project: str
    cluster: str
    reader: str
    url: str = "https://secretmanager.googleapis.com"
    metadata: str = "http://169.254.169.254"

    cloud: ClassVar[str] = "Google Cloud"
    program: ClassVar[Path] = Path(__file__).with_name("menagerie_secret.py")
    plain: ClassVar[str] = "."
    stored: ClassVar[str] = "_"
    allowed: ClassVar[re.Pattern[str]] = re.compile(r"[A-Za-z0-9_-]{1,255}")
    """`menagerie_<cluster>_<name>`. "CreateSecretRequest" allows letters, digits, hyphens and underscores, up to 255."""

    def _values(self) -> Mapping[str, str]:
        return {
            "METADATA_URL": self.metadata,
            "STORE_URL": self.url,
            "NAME_PREFIX": f"/v1/projects/{self.project}/secrets/{self._prefix()}",
        }

    def _prefix(self) -> str:
        return f"menagerie_{self.cluster}_"
