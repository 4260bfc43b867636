"""`audit`'s attempt to open a stack's state with an empty passphrase."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cluster.audit.evidence import Attempt

_CONTROL, _SUBJECT = "M.26", "the stack's state"
_ROUNDS, _KEY_BYTES = 1_000_000, 32
"""Parameters of PBKDF2 with SHA-256, with which Pulumi derives its AES-GCM key (sdk/go/common/resource/config, crypt.go)."""


def empty_passphrase(provider: Mapping[str, Any]) -> Iterator[Attempt]:
    """Try M.26. provider: ``secrets_providers`` of the deployment. Takes half a second of CPU time."""
    kind, state = str(provider.get("type", "")), provider.get("state") or {}
    if kind != "passphrase":
        # Pulumi's own service and the clouds' KMS use no typed passphrase.
        yield Attempt(
            _CONTROL, _SUBJECT, True if kind else None, f"encrypted by {kind}" if kind else "its encryption is unknown"
        )
        return
    opened = opens(str(state.get("salt", "")), "")
    results = {
        True: "an empty passphrase opens it",
        False: "an empty passphrase does not open it",
        None: "its salt has an unknown form",
    }
    yield Attempt(_CONTROL, _SUBJECT, None if opened is None else not opened, results[opened])


def opens(salt: str, passphrase: str) -> bool | None:
    """Return whether a passphrase decrypts the sample in the salt, ``v1:<salt>:v1:<nonce>:<sample>`` in base64.

    None for a salt of another form.
    """
    try:
        version, text, sample_version, nonce, sample = salt.split(":")
        mixed, *box = (base64.b64decode(part, validate=True) for part in (text, nonce, sample))
    except (ValueError, binascii.Error):
        return None
    if (version, sample_version) != ("v1", "v1"):
        return None
    key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), mixed, _ROUNDS, _KEY_BYTES)
    try:
        AESGCM(key).decrypt(box[0], box[1], None)
    except InvalidTag:
        return False
    return True
