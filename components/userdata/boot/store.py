"""What the host's store has for it: the payload, then the secrets."""

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
    """The store did not answer, or not to the end."""


def ask_store(names: list[str]) -> dict[str, str]:
    """All values, by name; Failure says what the store refuses or lacks."""
    try:
        done = subprocess.run([STORE, *names], check=False, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise StoreSilent("the store gave no answer within 60 s") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", "\n  ")
        kind = StoreSilent if done.returncode == STORE_SILENT else Failure
        raise kind(reason or f"{STORE} ended with {done.returncode}")
    try:
        values: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise Failure(f"{STORE} printed no JSON, or not all of it") from None
    missing = [name for name in names if not values.get(name)]
    if missing:
        raise Failure(f"the store gave nothing for {', '.join(missing)}")
    return values


def unpacked(name: str, packed: str, sha256: str) -> bytes:
    """A payload as the store holds it; Failure unless it has that SHA-256."""
    try:
        data = lzma.decompress(base64.b85decode(packed))
    except (ValueError, lzma.LZMAError) as error:
        raise Failure(f"{name} is cut short or damaged in the store: {error}") from None
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise Failure(f"{name}: sha256 is {found}, expected {sha256}")
    return data


def load_payload() -> dict[str, Any]:
    """What this host is to be; Failure unless it has the SHA-256 that the user data gave.

    The copy on disk serves every later boot: the store may by then hold only a payload of newer hosts.
    """
    sha256, name = PAYLOAD.read_text().split()
    kept = PAYLOAD.with_name(name)
    if not kept.exists() or digest(kept) != sha256:
        write(kept, unpacked(name, ask_store([name])[name], sha256), 0o600, "root:root")
        say(f"{name} fetched")
    config: dict[str, Any] = json.loads(kept.read_bytes())
    return config


def place_secrets(secrets: list[dict[str, Any]]) -> dict[str, str]:
    """Fetch and write every secret; entries of one path are joined in their order. What the store gave, by name.

    The store is asked at every boot, so that a rotated key arrives. Where it does not answer, a
    host that already has all of its secrets goes on with them, and nothing is returned.
    """
    by_path: dict[str, list[dict[str, Any]]] = {}
    for secret in secrets:
        by_path.setdefault(secret["path"], []).append(secret)
    try:
        values = ask_store(sorted({secret["name"] for secret in secrets}))
    except StoreSilent as silence:
        if not all(Path(path).exists() for path in by_path):
            raise
        say(f"the secret store does not answer ({silence}); going on with the secrets on disk")
        return {}
    staged = []
    for path, parts in by_path.items():
        texts = [values[part["name"]] for part in parts]
        text = texts[0] if len(texts) == 1 else "".join(text.rstrip() + "\n" for text in texts)
        staged.append((stage(Path(path), text.encode(), parts[0]["mode"], parts[0]["owner"]), path))
    # One after another without a pause: programs read a certificate and its key together.
    for new, path in staged:
        if new:
            new.replace(path)
    return values
