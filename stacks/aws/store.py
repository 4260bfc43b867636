"""AWS Secrets Manager as the store, as hosts see it.

Sources, by page title: "Retrieve security credentials from instance metadata"; "Create a signed AWS API request";
"GetSecretValue" (at most 64 KiB) and "Common Errors" (throttling is HTTP 400) of the Secrets Manager API reference.

It uses GetSecretValue and not BatchGetSecretValue: "AWS Secrets Manager quotas" allows 10,000 calls a second of the first
and 100 of the second; a batch is limited to 20 names, and needs a permission in addition to the one for each secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from stacks.cloud_store import CloudStore


@dataclass(frozen=True)
class AwsStore(CloudStore):
    """See `components.userdata.stores`. Region and role come from the host's metadata; `REGION` in `url` is replaced with the region.
    URLs have no trailing slash.
    """

    cluster: str
    reader: str
    url: str = "https://secretsmanager.REGION.amazonaws.com"
    metadata: str = "http://169.254.169.254"

    cloud: ClassVar[str] = "AWS"
    program: ClassVar[Path] = Path(__file__).with_name("menagerie_secret.py")
    plain: ClassVar[str] = "-"
    stored: ClassVar[str] = "_"
    allowed: ClassVar[re.Pattern[str]] = re.compile(r"[A-Za-z0-9/_+=.@]{1,512}")
    """`menagerie/<cluster>/<name>`. "CreateSecret" allows letters, digits and /_+=.@- up to 512, and warns about names that
    end in a hyphen and six characters, as `kubernetes-ca.crt` does: they look like ARNs. So there are no hyphens."""

    def _values(self) -> Mapping[str, str]:
        return {
            "METADATA_URL": self.metadata,
            "STORE_URL": self.url,
            "NAME_PREFIX": self._prefix(),
        }

    def _prefix(self) -> str:
        return f"menagerie/{self.cluster}/".replace(self.plain, self.stored)
