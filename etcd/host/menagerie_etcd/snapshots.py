"""Snapshots of an etcd as files: whether one is whole and the one that is meant, and a data folder made from it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from .ports import unused
from .system import Failure, as_user, own, run_as

WAL_BYTES = 256 * 2**20
"""What a restored folder takes beside its database: segments of 64 MB that etcd reserves at once, and some room."""
WORK_S = 1800
_DIGEST = 32
_SECTOR = 512
_EMPTY_S = 20
_NOTE = ("compact_rev_key", "0")
"""What the first of several API servers writes to a new etcd. One that has seen the key and finds it gone when it next
compacts ends with an index out of range (apiserver 0.36.4, storage/etcd3/compact.go:218)."""
_EMPTY_REVISION = 2
"""An etcd begins with 1, and the note is one write."""


class Programs(NamedTuple):
    """The folder with etcd's programs, and the user that they run as."""

    folder: Path
    user: str

    def etcdutl(self, *words: str) -> bytes:
        return run_as(self.user, [str(self.folder / "etcdutl"), *words], WORK_S)


def need(size: int) -> int:
    """Bytes that a restore of a snapshot of that size takes: the file, the database made from it, its log."""
    return 2 * size + WAL_BYTES


def refuse_without_room(folder: Path, size: int) -> None:
    """Failure where the file system of `folder` has no room for a restore."""
    free = shutil.disk_usage(str(folder)).free
    if free < need(size):
        raise Failure(
            f"{_mb(free)} free in {folder}, a restore of this snapshot needs about {_mb(need(size))}. Nothing was changed."
        )


def refuse_damage(path: Path) -> None:
    """Failure unless the file ends with the SHA-256 of all before it, as `etcdctl snapshot save` writes it."""
    size = path.stat().st_size
    if size % _SECTOR != _DIGEST:
        raise Failure(f"the snapshot is truncated, or was not made by `snapshot save`: {size} bytes")
    digest, left = hashlib.sha256(), size - _DIGEST
    with path.open("rb") as file:
        while left:
            block = file.read(min(left, 2**20))
            digest.update(block)
            left -= len(block)
        kept = file.read()
    if digest.digest() != kept:
        raise Failure(f"the snapshot is damaged: its SHA-256 is {digest.hexdigest()}, recorded in it {kept.hex()}")


def refuse_other(path: Path, programs: Programs, facts: dict[str, Any]) -> dict[str, Any]:
    """{hash, revision} of the file as etcdutl finds them; the hash in eight hex digits.

    Failure where one of them is among `facts` and was recorded as another.
    """
    status: dict[str, Any] = json.loads(programs.etcdutl("snapshot", "status", str(path), "--write-out=json"))
    found = {"hash": format(status["hash"], "08x"), "revision": int(status["revision"])}
    if facts.get("hash") not in (None, found["hash"]):
        raise Failure(f"hash mismatch (file {found['hash']}, recorded {facts['hash']})")
    if facts.get("revision") not in (None, found["revision"]):
        raise Failure(f"another revision (file {found['revision']}, recorded {facts['revision']})")
    return found


def restore(path: Path, to: Path, programs: Programs, told: dict[str, str], bump: int) -> None:
    """Make a data folder from a snapshot. `told`: the flags of `etcdutl snapshot restore` that say whose.

    Revisions go on `bump` above the snapshot's, with all before marked as compacted, so that no client can take the
    past for the present (etcd.io, "Disaster recovery").
    """
    part = to.with_name(to.name + ".part")
    shutil.rmtree(str(part), ignore_errors=True)
    flags = [f"--{name}={value}" for name, value in sorted(told.items())]
    bumped = [f"--bump-revision={bump}", "--mark-compacted"] if bump else []
    programs.etcdutl("snapshot", "restore", str(path), f"--data-dir={part}", *flags, *bumped)
    part.rename(to)


def empty(programs: Programs) -> bytes:
    """A snapshot of an etcd with nothing but API servers' note, made by one that lives for a moment."""
    with tempfile.TemporaryDirectory() as name:
        folder = own(Path(name), programs.user)
        client, peer = (f"http://127.0.0.1:{port}" for port in unused(2))
        words = [
            str(programs.folder / "etcd"),
            f"--data-dir={folder}/data",
            "--name=empty",
            *(f"--{flag}={client}" for flag in ("listen-client-urls", "advertise-client-urls")),
            *(f"--{flag}={peer}" for flag in ("listen-peer-urls", "initial-advertise-peer-urls")),
            f"--initial-cluster=empty={peer}",
            "--unsafe-no-fsync",
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, **as_user(programs.user))
        try:
            return _saved(programs, client, folder / "snapshot.db")
        finally:
            process.kill()
            process.wait()


def _saved(programs: Programs, client: str, path: Path) -> bytes:
    words = [str(programs.folder / "etcdctl"), "--endpoints=" + client, "--command-timeout=2s"]
    end = time.monotonic() + _EMPTY_S
    while True:
        try:
            run_as(programs.user, [*words, "endpoint", "health"], 5)
            break
        except Failure:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    run_as(programs.user, [*words, "put", *_NOTE], _EMPTY_S)
    run_as(programs.user, [*words, "snapshot", "save", str(path)], _EMPTY_S)
    if refuse_other(path, programs, {})["revision"] != _EMPTY_REVISION:
        raise Failure("the etcd that was to be empty has keys: something on this host wrote to it")
    return path.read_bytes()


def _mb(size: int) -> str:
    return f"{-(-size // 10**6)} MB"
