"""Azure Key Vault as the store, as hosts see it.

Sources, by page title: "Use managed identities on a virtual machine to acquire access token" (and which of its errors
pass); "Get Secret - Get Secret" (api-version 2025-07-01) and "Azure Key Vault REST API Error Codes".
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from stacks.cloud_store import CloudStore


@dataclass(frozen=True)
class AzureStore(CloudStore):
    """See `components.userdata.stores`. The vault at `url` holds the secrets of one cluster. No URL has a slash at its end.

    `client_id` is that of the managed identity to ask as: a company's policies may give a machine more of them.
    `names` says under which other name the vault holds a value: what was deleted keeps its name for months, so names
    there are generated. `held` are values that the program has itself, for none is secret: what the vault need not keep
    no identity needs a right to. `audience` is another in the other clouds of Azure (China: https://vault.azure.cn).
    """

    url: str
    client_id: str
    reader: str
    names: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    audience: str = "https://vault.azure.net"
    metadata: str = "http://169.254.169.254"

    cloud: ClassVar[str] = "Azure"
    program: ClassVar[Path] = Path(__file__).with_name("menagerie_secret.py")
    plain: ClassVar[str] = "."
    stored: ClassVar[str] = "--"
    allowed: ClassVar[re.Pattern[str]] = re.compile(r"[a-z][0-9a-z-]{0,126}")
    """"About keys, secrets, and certificates" allows letters, digits and hyphens, up to 127 with a letter first, and does
    not tell capitals from small letters: only small ones are taken here. A value has at most 25 kB."""

    def script(self) -> str:
        held = json.dumps(dict(self.held), sort_keys=True, separators=(",", ":"))
        if '"""' in held:
            raise ValueError("a value that ends a text of Python can't be in the program of a host")
        return super().script().replace("HELD_VALUES", held)

    def _values(self) -> Mapping[str, str]:
        return {
            "METADATA_URL": self.metadata,
            "STORE_URL": self.url,
            "AUDIENCE": urllib.parse.quote(self.audience, safe=""),
            "NAMES_STORED": " ".join(f"{name}={stored}" for name, stored in sorted(self.names.items())),
            "CLIENT_ID": urllib.parse.quote(self.client_id, safe=""),
        }

    def _prefix(self) -> str:
        return ""
