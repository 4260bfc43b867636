"""``python3 -m menagerie_etcd.backup [--in-turn]``: one backup of an etcd, from this host's member.

Every member's host runs it on a timer with --in-turn, and one of them acts: the first sound follower. Another one steps
in where nobody has made a backup for one and a half times the interval: its host may reach what the first can't.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

from .members import count, etcdctl, etcdutl, health, in_turn
from .programs import ProgramError
from .repository import RepositoryError, Snapshot
from .settings import Place, Settings

OVERDUE = 1.5
_LONGEST_S = 3600.0
"""For a snapshot: 8 GiB over a busy disk take minutes."""


class BackupError(Exception):
    """There is no backup; the text says why."""


def main() -> None:
    _, *words = sys.argv
    place = Place.of_unit()
    settings = place.settings()
    try:
        with alone(place.cache):
            say(back_up_in_turn(settings, place) if "--in-turn" in words else back_up(settings, place))
    except (BackupError, RepositoryError, ProgramError, OSError) as error:
        sys.exit(f"no backup of etcd {settings.role}: {error}")


def back_up_in_turn(settings: Settings, place: Place) -> str:
    """A backup, if it is this member's to make."""
    sound = health(settings)
    turn = in_turn(sound)
    if turn == settings.member:
        return back_up(settings, place)
    if settings.member not in {each.name for each in sound}:
        return f"{settings.member} does not answer; it is the turn of {turn or 'no member'}"
    repository = place.repository()
    newest = repository.snapshots("backup")[:1] if repository.exists() else ()
    if newest and time.time() - newest[0].time < OVERDUE * settings.every:
        return f"it is the turn of {turn}; the newest backup is {_ago(newest[0])} old, by {newest[0].tags['member']}"
    if not newest:
        return f"it is the turn of {turn}, which has made none yet"
    say(f"it is the turn of {turn}, but the newest backup is {_ago(newest[0])} old")
    return back_up(settings, place)


def back_up(settings: Settings, place: Place) -> str:
    """Snapshot, look at it, keep it. What is too old goes with a drill (`menagerie_etcd.drill`)."""
    started = time.monotonic()
    own = settings.members[settings.member]
    # A member that is down is told at once: `snapshot save` waits for it as long as it may take.
    etcdctl(settings, [own], "endpoint", "status")
    repository = place.repository()
    repository.ensure()
    with working_folder(place.work, "a snapshot", 0) as folder:
        file = folder / settings.name
        etcdctl(settings, [own], "snapshot", "save", str(file), patience=_LONGEST_S)
        tags = {"kind": "backup", **facts(settings, file)}
        kept = repository.put(file, settings.name, tags)
    told = f"revision {tags['revision']}, {tags['keys']} keys, {int(tags['size']) / 2**20:.1f} MiB"
    return f"backup {kept[:8]} of etcd {settings.role}: {told}, in {time.monotonic() - started:.1f} s"


def facts(settings: Settings, file: Path) -> dict[str, str]:
    """What a snapshot is to be known by: all that a restore from it must show again."""
    status: dict[str, Any] = json.loads(etcdutl("snapshot", "status", str(file), "--write-out=json"))
    own = settings.members[settings.member]
    # Of the whole key space at that revision, and from this member alone: without a quorum it still answers.
    keys, _ = count(settings, own, f"--rev={status['revision']}", "--consistency=s")
    (answer,) = json.loads(etcdctl(settings, [own], "endpoint", "status", "--write-out=json"))
    return {
        "cluster": settings.cluster,
        "etcd": settings.role,
        "member": settings.member,
        "cluster_id": format(answer["Status"]["header"]["cluster_id"], "x"),
        "etcd_version": answer["Status"]["version"],
        "revision": str(status["revision"]),
        "hash": format(status["hash"], "08x"),
        "keys": str(keys),
        "size": str(file.stat().st_size),
    }


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One run at a time on a host; the kernel drops the lock when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def working_folder(folder: Path, what: str, needed: int) -> Iterator[Path]:
    """An empty folder, gone afterwards; also what a killed run left in it. BackupError where so many bytes are not free."""
    shutil.rmtree(str(folder), ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        free = shutil.disk_usage(str(folder)).free
        if free < needed:
            sizes = f"{free / 2**20:.0f} MiB are free in {folder}, and {what} takes about {needed / 2**20:.0f}"
            raise BackupError(f"{sizes}; nothing was done")
        yield folder
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)


def say(text: str) -> None:
    print(text, flush=True)


def _ago(snapshot: Snapshot) -> str:
    minutes = (time.time() - snapshot.time) / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


if __name__ == "__main__":
    main()
