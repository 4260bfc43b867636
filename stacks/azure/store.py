"""Azure Key Vault as the store, as hosts see it.

Sources, by page title: "Use managed identities on a virtual machine to acquire access token" (and which of its errors
pass); "Get Secret - Get Secret" (api-version 2025-07-01) and "Azure Key Vault REST API Error Codes".
"""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = Path(__file__).with_name("menagerie_secret.py")
_PLAIN, _STORED = ".", "--"
_NAME = re.compile(r"[a-z][0-9a-z-]{0,126}")


@dataclass(frozen=True)
class AzureStore:
    """See `userdata.stores`. The vault at `url` holds the secrets of one cluster. No URL has a slash at its end.

    `client_id` is that of the managed identity to ask as: a company's policies may give a machine more of them.
    `audience` is another in the other clouds of Azure (China: https://vault.azure.cn).
    """

    url: str
    client_id: str
    audience: str = "https://vault.azure.net"
    metadata: str = "http://169.254.169.254"

    def stored_name(self, name: str) -> str:
        """`name` in the vault, with `--` for `.`. Raises ValueError if it can't be one.

        "About keys, secrets, and certificates" allows letters, digits and hyphens, up to 127 with a letter first, and
        does not tell capitals from small letters: only small ones are taken here. A value has at most 25 kB.
        """
        stored = name.replace(_PLAIN, _STORED)
        if not _NAME.fullmatch(stored) or self.plain_name(stored) != name:
            raise ValueError(f"{name!r} can't be the name of a secret of Azure")
        return stored

    def plain_name(self, stored: str) -> str:
        """The inverse of `stored_name`."""
        return stored.replace(_STORED, _PLAIN)

    def script(self) -> str:
        text = _PROGRAM.read_text()
        filled = {
            "METADATA_URL": self.metadata,
            "STORE_URL": self.url,
            "AUDIENCE": urllib.parse.quote(self.audience, safe=""),
            "CLIENT_ID": urllib.parse.quote(self.client_id, safe=""),
            "NAME_OLD": _PLAIN,
            "NAME_NEW": _STORED,
        }
        for placeholder, value in filled.items():
            text = text.replace(placeholder, value)
        return text
