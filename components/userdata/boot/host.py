"""Functions that all steps share."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import subprocess
import sys
from pathlib import Path

CHUNK = 1 << 20


class Failure(Exception):
    """A step failed; the message says what and why."""


def say(text: str) -> None:
    print(f"{os.path.basename(sys.argv[0])}: {text}", flush=True)


def run(*command: str) -> str:
    """Return standard output of `command`. Failure has its error output."""
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Failure(f"{' '.join(command)} failed with {done.returncode}: {words}")
    return done.stdout.decode(errors="replace")


def write(path: Path, data: bytes, mode: int, owner: str) -> bool:
    """Write `path` atomically with `mode` and `owner` (user:group); False if nothing differs."""
    new = stage(path, data, mode, owner)
    if new:
        new.replace(path)
    return bool(new)


def stage(path: Path, data: bytes, mode: int, owner: str) -> Path | None:
    """Write a new file that can replace `path`; None if nothing differs."""
    user, group = owner.split(":")
    ids = (pwd.getpwnam(user).pw_uid, grp.getgrnam(group).gr_gid)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        current = path.stat()
        if path.read_bytes() == data and (current.st_mode & 0o7777, current.st_uid, current.st_gid) == (mode, *ids):
            return None
    except FileNotFoundError:
        pass
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    handle = os.open(str(new), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        os.fchown(out.fileno(), *ids)
        os.fchmod(out.fileno(), mode)
        out.flush()
        os.fsync(out.fileno())
    return new


def digest(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as data:
        for chunk in iter(lambda: data.read(CHUNK), b""):
            hashed.update(chunk)
    return hashed.hexdigest()
