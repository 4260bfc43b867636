"""Snapshot files of an etcd: verify one, and restore a data folder from it."""

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
"""Size of a restored folder without its database: segments of 64 MB that etcd preallocates, and a margin."""
WORK_S = 1800
_DIGEST = 32
_SECTOR = 512
_EMPTY_S = 20
_NOTE = ("compact_rev_key", "0")
"""The first of several API servers writes this to a new etcd. One that saw the key, and does not find it at its next
compaction, crashes with an index out of range (apiserver 0.36.4, storage/etcd3/compact.go:218)."""
_EMPTY_REVISION = 2
"""A new etcd has revision 1, and the note is one write."""


class Programs(NamedTuple):
    """The folder with etcd's programs, and the user that they run as."""

    folder: Path
    user: str

    def etcdutl(self, *words: str) -> bytes:
        return run_as(self.user, [str(self.folder / "etcdutl"), *words], WORK_S)


def need(size: int) -> int:
    """Return the bytes that a restore of a snapshot of this size takes: the file, the database, the WAL."""
    return 2 * size + WAL_BYTES


def refuse_without_room(folder: Path, size: int) -> None:
    """Failure if the file system of `folder` has no room for a restore."""
    free = shutil.disk_usage(str(folder)).free
    if free < need(size):
        raise Failure(
            f"{_mb(free)} free in {folder}, a restore of this snapshot needs about {_mb(need(size))}. Nothing was changed."
        )


def refuse_damage(path: Path) -> None:
    """Failure unless the file ends with the SHA-256 of all before it, which `etcdctl snapshot save` writes."""
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
        raise Failure(f"the snapshot is damaged: its SHA-256 is {digest.hexdigest()}, but it records {kept.hex()}")


def refuse_other(path: Path, programs: Programs, facts: dict[str, Any]) -> dict[str, Any]:
    """Return {hash, revision} of the file from etcdutl; the hash has eight hex digits.

    Failure if `facts` has another value of one of them.
    """
    status: dict[str, Any] = json.loads(programs.etcdutl("snapshot", "status", str(path), "--write-out=json"))
    actual = {"hash": format(status["hash"], "08x"), "revision": int(status["revision"])}
    if facts.get("hash") not in (None, actual["hash"]):
        raise Failure(f"hash mismatch (file {actual['hash']}, recorded {facts['hash']})")
    if facts.get("revision") not in (None, actual["revision"]):
        raise Failure(f"another revision (file {actual['revision']}, recorded {facts['revision']})")
    return actual


def restore(path: Path, to: Path, programs: Programs, owner: dict[str, str], bump: int) -> None:
    """Restore a data folder from a snapshot. `owner`: flags of `etcdutl snapshot restore` for member and cluster.

    Revisions continue `bump` above the snapshot's, and all earlier ones are marked as compacted, so no client mistakes
    old data for current data (etcd.io, "Disaster recovery").
    """
    part = to.with_name(to.name + ".part")
    shutil.rmtree(str(part), ignore_errors=True)
    flags = [f"--{name}={value}" for name, value in sorted(owner.items())]
    bumped = [f"--bump-revision={bump}", "--mark-compacted"] if bump else []
    programs.etcdutl("snapshot", "restore", str(path), f"--data-dir={part}", *flags, *bumped)
    part.rename(to)


def empty(programs: Programs) -> bytes:
    """Return a snapshot of a temporary etcd that has only the API servers' note."""
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
        raise Failure("the new etcd is not empty: something on this host wrote to it")
    return path.read_bytes()


def _mb(size: int) -> str:
    return f"{-(-size // 10**6)} MB"
