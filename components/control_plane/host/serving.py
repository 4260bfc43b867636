"""serving: checks that this host's API server serves; `serving encryption`: that it uses the encryption keys on the
disk; `serving authorities`: that it knows clients of the authorities on the disk, no others, and shows the certificate
there.

It rereads all of these automatically within a minute, and keeps the former ones if the new ones are unusable. A metric
has the hash of the file of encryption keys in use (k8s.io/apiserver, encryptionconfig/controller). Each handshake shows
the others.
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
    """Return why the metrics do not show that this configuration is in use, "" if they do."""
    expected, used = hashlib.sha256(config).hexdigest(), _IN_USE.findall(metrics)
    if any(each.endswith(expected) for each in used):
        return ""
    return f"the API server works with encryption keys of hash {', '.join(used) or 'unknown'}, not {expected}"


def wrong_authorities(said: Greeting, pki: Path) -> str:
    """Return why a greeting does not show that the files of a folder are in use, "" if it does."""
    texts = [(pki / f"{name}.crt").read_text() for name in ("ca", "front-proxy-ca")]
    expected = {leaf.read(der).subject for text in texts for der in leaf.blocks(text)}
    known = {leaf.names(name) for name in said.authorities}
    if expected - known:
        return f"the API server does not know clients of {len(expected - known)} of {len(expected)} authorities yet"
    if known - expected:
        return f"the API server still knows clients of {len(known - expected)} authorities that are not on the disk"
    if said.certificate != leaf.blocks((pki / "apiserver.crt").read_text())[0]:
        return "the API server shows another certificate than is on the disk"
    return ""


def main() -> None:
    api = Api(Path(KUBECONFIG))
    # sys.exit("") would exit with 1 too.
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
