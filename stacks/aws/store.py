"""AWS Secrets Manager as the store, as hosts see it.

Sources, by page title: "Retrieve security credentials from instance metadata"; "Create a signed AWS API request";
"GetSecretValue" (at most 64 KiB) and "Common Errors" (throttling is HTTP 400) of the Secrets Manager API reference.

GetSecretValue and not BatchGetSecretValue: "AWS Secrets Manager quotas" allows 10,000 calls a second of the one and 100
of the other; a batch ends at 20 names, and needs a permission of its own beside the one for each secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = Path(__file__).with_name("menagerie_secret.py")
_PLAIN, _STORED = "-", "_"
_NAME = re.compile(r"[A-Za-z0-9/_+=.@]{1,512}")


@dataclass(frozen=True)
class AwsStore:
    """See `userdata.stores`. Region and role come from the host's metadata; `REGION` in `url` stands for the region.

    `url` is another in China (amazonaws.com.cn). No URL has a slash at its end.
    """

    cluster: str
    url: str = "https://secretsmanager.REGION.amazonaws.com"
    metadata: str = "http://169.254.169.254"

    def stored_name(self, name: str) -> str:
        """`name` in Secrets Manager: `menagerie/<cluster>/<name>`, with `_` for `-`. Raises ValueError if it can't be one.

        "CreateSecret" allows letters, digits and /_+=.@- up to 512, and warns of names that end in a hyphen and six
        characters, as `kubernetes-ca.crt` does: they look like ARNs. So there are no hyphens.
        """
        stored = self._prefix + name.replace(_PLAIN, _STORED)
        if not _NAME.fullmatch(stored) or self.plain_name(stored) != name:
            raise ValueError(f"{name!r} can't be the name of a secret of AWS")
        return stored

    def plain_name(self, stored: str) -> str:
        """The inverse of `stored_name`."""
        return stored.removeprefix(self._prefix).replace(_STORED, _PLAIN)

    def script(self) -> str:
        text = _PROGRAM.read_text()
        filled = {
            "METADATA_URL": self.metadata,
            "STORE_URL": self.url,
            "NAME_PREFIX": self._prefix,
            "NAME_OLD": _PLAIN,
            "NAME_NEW": _STORED,
        }
        for placeholder, value in filled.items():
            text = text.replace(placeholder, value)
        return text

    @property
    def _prefix(self) -> str:
        return f"menagerie/{self.cluster}/".replace(_PLAIN, _STORED)
