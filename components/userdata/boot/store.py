"""Read the payload and secrets from the host's store."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import subprocess
from pathlib import Path
from typing import Any

from .host import Failure, digest, say, stage, write

PAYLOAD = Path("/var/lib/menagerie/payload.sha256")
STORE = "/usr/local/sbin/menagerie-secret"
STORE_SILENT = 69


class StoreSilent(Failure):
    """The store did not answer, or the answer broke off."""


def ask_store(names: list[str]) -> dict[str, str]:
    """Return all values by name. Failure says what the store refuses or lacks."""
    try:
        done = subprocess.run([STORE, *names], check=False, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise StoreSilent("the store did not answer within 60 s") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", "\n  ")
        kind = StoreSilent if done.returncode == STORE_SILENT else Failure
        raise kind(reason or f"{STORE} exited with {done.returncode}")
    try:
        values: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise Failure(f"{STORE} printed no JSON, or incomplete JSON") from None
    missing = [name for name in names if not values.get(name)]
    if missing:
        raise Failure(f"the store has no value for {', '.join(missing)}")
    return values


def unpacked(name: str, packed: str, sha256: str) -> bytes:
    """Unpack a payload from the store. Failure unless it has this SHA-256."""
    try:
        data = lzma.decompress(base64.b85decode(packed))
    except (ValueError, lzma.LZMAError) as error:
        raise Failure(f"{name} is truncated or damaged in the store: {error}") from None
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise Failure(f"{name}: sha256 is {actual}, expected {sha256}")
    return data


def load_payload() -> dict[str, Any]:
    """Return this host's payload. Failure unless it has the SHA-256 of the user data.

    Later boots use the copy on disk: the store may then have only a payload of newer hosts.
    """
    sha256, name = PAYLOAD.read_text().split()
    kept = PAYLOAD.with_name(name)
    if not kept.exists() or digest(kept) != sha256:
        write(kept, unpacked(name, ask_store([name])[name], sha256), 0o600, "root:root")
        say(f"{name} fetched")
    config: dict[str, Any] = json.loads(kept.read_bytes())
    return config


def place_secrets(secrets: list[dict[str, Any]]) -> dict[str, str]:
    """Fetch and write all secrets, and return them by name. Entries with one path are joined in order.

    Every boot asks the store for rotated keys. If it does not answer, a host that has all of its
    secrets continues with them, and gets {}.
    """
    by_path: dict[str, list[dict[str, Any]]] = {}
    for secret in secrets:
        by_path.setdefault(secret["path"], []).append(secret)
    try:
        values = ask_store(sorted({secret["name"] for secret in secrets}))
    except StoreSilent as silence:
        if not all(Path(path).exists() for path in by_path):
            raise
        say(f"the secret store does not answer ({silence}); continuing with the secrets on disk")
        return {}
    staged = []
    for path, parts in by_path.items():
        texts = [values[part["name"]] for part in parts]
        text = texts[0] if len(texts) == 1 else "".join(text.rstrip() + "\n" for text in texts)
        staged.append((stage(Path(path), text.encode(), parts[0]["mode"], parts[0]["owner"]), path))
    # Without a pause: programs read a certificate and its key together.
    for new, path in staged:
        if new:
            new.replace(path)
    return values
