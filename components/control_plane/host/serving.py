"""serving: whether this host's API server serves; `serving encryption`, whether it works with the encryption keys that are
on the disk; `serving authorities`, whether it knows clients of the authorities on the disk, no others, and shows the
certificate there.

It reads all of these again by itself within a minute, and keeps the former ones where the new can't be used. Of encryption
keys it tells the hash of the file that it works with (k8s.io/apiserver, encryptionconfig/controller); the others it says in
each handshake.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import sys
from pathlib import Path

from . import leaf
from .api import Api, ApiError
from .greeting import Greeting, greeting
from .phases import KUBERNETES, PKI, SETTINGS

KUBECONFIG = KUBERNETES / "menagerie-refresh.conf"
ENCRYPTION = KUBERNETES / "encryption-config.yaml"
_IN_USE = re.compile(
    r'^apiserver_encryption_config_controller_last_config_info\{.*\bhash="([^"]+)".*\} 1$', re.MULTILINE
)


def wrong_encryption(metrics: str, config: bytes) -> str:
    """Why the metrics do not say that this configuration is in use; nothing where they do."""
    wanted, used = hashlib.sha256(config).hexdigest(), _IN_USE.findall(metrics)
    if any(each.endswith(wanted) for each in used):
        return ""
    return f"the API server works with encryption keys of hash {', '.join(used) or 'unknown'}, not {wanted}"


def wrong_authorities(said: Greeting, pki: Path) -> str:
    """Why a greeting does not say that the files of a folder are in use; nothing where it does."""
    texts = [(pki / f"{name}.crt").read_text() for name in ("ca", "front-proxy-ca")]
    wanted = {leaf.read(der).subject for text in texts for der in leaf.blocks(text)}
    known = {leaf.names(name) for name in said.authorities}
    if wanted - known:
        return f"the API server does not know clients of {len(wanted - known)} of {len(wanted)} authorities yet"
    if known - wanted:
        return f"the API server still knows clients of {len(known - wanted)} authorities that are not on the disk"
    if said.certificate != leaf.blocks((pki / "apiserver.crt").read_text())[0]:
        return "the API server shows another certificate than is on the disk"
    return ""


def main() -> None:
    api = Api(Path(KUBECONFIG))
    # An empty text would end the program with 1 too.
    if sys.argv[1:] == ["encryption"]:
        sys.exit(wrong_encryption(api.text("/metrics"), ENCRYPTION.read_bytes()) or None)
    if sys.argv[1:] == ["authorities"]:
        sys.exit(wrong_authorities(greeting(api.host, api.port), PKI) or None)
    api.text(json.loads(SETTINGS.read_text())["ready_path"])


if __name__ == "__main__":
    try:
        main()
    except (ApiError, OSError, ValueError, http.client.HTTPException) as failure:
        sys.exit(str(failure))
