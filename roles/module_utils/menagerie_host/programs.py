"""Programs of a host: which match their downloads, and which must be fetched."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from . import Refused
from .files import FileState, place, read

MANIFEST = "/var/lib/menagerie/programs.json"
"""Path -> SHA-256 of the download and of the file, and `stamp` of the file when it was placed."""
CHUNK = 1 << 20


def pending(programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the programs with a file that is missing or differs from the download."""
    manifest = load_manifest()
    return [program for program in programs if not is_current(program, manifest)]


def apply(programs: list[dict[str, Any]], attempts: int, timeout: int) -> None:
    """Fetch and place `programs`. Refused, with every reason, if some fail; the others are placed."""
    # Imported here, because most runs fetch nothing, and importing this takes longer than the rest of such a run.
    from .downloads import fetch_all

    entries, reasons = fetch_all(programs, attempts, timeout)
    if entries:
        known = {path: {**entry, "stamp": stamp(path)} for path, entry in entries.items()}
        text = json.dumps(load_manifest() | known, indent=1, sort_keys=True) + "\n"
        place(MANIFEST, FileState(text.encode(), 0o644, os.geteuid(), os.getegid()))
    if reasons:
        raise Refused("; ".join(sorted(reasons)))


def targets(program: dict[str, Any]) -> list[str]:
    return list((program["members"] or {}).values()) or [program["path"]]


def is_current(program: dict[str, Any], manifest: dict[str, Any]) -> bool:
    """Return whether every file of the program matches its download."""
    mode = int(program["mode"], 8)
    for path in targets(program):
        if os.path.islink(path) or not os.path.isfile(path) or os.stat(path).st_mode & 0o7777 != mode:
            return False
        known = manifest.get(path, {})
        if known.get("source") == program["sha256"]:
            if stamp(path) != known.get("stamp") and file_sha256(path) != known.get("sha256"):
                return False
        elif not program["path"] or file_sha256(path) != program["sha256"]:
            return False
    return True


def stamp(path: str) -> list[int]:
    """Return what every change of a file changes. The kernel sets the last, the inode's change time, by its clock."""
    status = os.stat(path)
    return [status.st_ino, status.st_size, status.st_ctime_ns]


def file_sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def load_manifest() -> dict[str, Any]:
    """Return what earlier runs unpacked; nothing if the file is missing or damaged (then all is fetched again)."""
    try:
        return dict(json.loads(read(MANIFEST).content or b"{}"))
    except ValueError:
        return {}
