"""Azure Key Vault as the store, as hosts see it.

Sources, by page title: "Use managed identities on a virtual machine to acquire access token" (including which of its
errors are transient); "Get Secret - Get Secret" (api-version 2025-07-01) and "Azure Key Vault REST API Error Codes".
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
    """See `components.userdata.stores`. The vault at `url` holds the secrets of one cluster. URLs have no trailing slash.

    `client_id` is that of the managed identity to use: a company's policies may assign further identities to a machine.
    `names` maps a value to its name in the vault: a deleted secret keeps its name for months, so names there are generated.
    `held` are values that the program itself contains because they are not secret: what the vault need not keep, no identity
    needs a permission for. `audience` differs in other clouds of Azure (China: https://vault.azure.cn).
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
    """"About keys, secrets, and certificates" allows letters, digits and hyphens, up to 127 with a letter first, and is
    case-insensitive: this accepts only lower case. A value has at most 25 kB."""

    def script(self) -> str:
        held = json.dumps(dict(self.held), sort_keys=True, separators=(",", ":"))
        if '"""' in held:
            raise ValueError('a value with """ would end a Python string and can\'t be part of a host\'s program')
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
