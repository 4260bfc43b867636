"""``python3 -m menagerie_etcd.backup [--in-turn]``: make one backup of an etcd, from this host's member.

A timer on every member's host runs it with --in-turn, and the first healthy follower makes the backup. Another member
does if the newest backup is older than 1.5 intervals: its host may reach what the first one can't.
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
"""For a snapshot: 8 GiB take minutes on a busy disk."""


class BackupError(Exception):
    """No backup was made; the text says why."""


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
    """Make a backup if it is this member's turn."""
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
    """Save a snapshot, check it and store it. Drills remove old ones (`menagerie_etcd.drill`)."""
    started = time.monotonic()
    own = settings.members[settings.member]
    # Fail at once if the member is down: `snapshot save` would wait until its time-out.
    etcdctl(settings, [own], "endpoint", "status")
    repository = place.repository()
    repository.ensure()
    with working_folder(place.work, "a snapshot", 0) as folder:
        file = folder / settings.name
        etcdctl(settings, [own], "snapshot", "save", str(file), patience=_LONGEST_S)
        tags = {"kind": "backup", **facts(settings, file)}
        kept = repository.put(file, settings.name, tags)
    summary = f"revision {tags['revision']}, {tags['keys']} keys, {int(tags['size']) / 2**20:.1f} MiB"
    return f"backup {kept[:8]} of etcd {settings.role}: {summary}, in {time.monotonic() - started:.1f} s"


def facts(settings: Settings, file: Path) -> dict[str, str]:
    """Return a snapshot's facts; a restore from it must reproduce them."""
    status: dict[str, Any] = json.loads(etcdutl("snapshot", "status", str(file), "--write-out=json"))
    own = settings.members[settings.member]
    # All keys at that revision, from this member alone: it answers even without a quorum.
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
    """Allow one run at a time on a host. The kernel drops the lock when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def working_folder(folder: Path, what: str, needed: int) -> Iterator[Path]:
    """Yield an empty folder, and delete it before and afterwards. BackupError unless `needed` bytes are free."""
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
