"""``python3 -m menagerie_etcd.drill [--in-turn]``: is the newest backup one that an etcd can be made from?

It is fetched, its hash compared with the recorded one, restored into a folder, and an etcd of its own started from that
on loopback, with the member's certificates, for a moment: its keys are counted. The result is kept beside the backups.
A share of all that the repository holds is read as well. Only where all is well, backups that are too old go: to drop
them takes the repository for itself, and a run that is killed then keeps backups out for half an hour.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Sequence

from .backup import BackupError, alone, say, working_folder
from .members import count, etcdctl, etcdutl, health, in_turn
from .ports import unused
from .programs import ProgramError, clean
from .repository import Repository, RepositoryError, Snapshot
from .settings import Place, Settings

RETRY = 8
"""A drill that failed is tried again after this part of the time between two."""
_PATIENCE_S = 300.0
"""For the throw-away etcd to answer: it reads the whole file first."""


class DrillError(Exception):
    """The backup did not stand the test; the text says what was wrong."""


def main() -> None:
    _, *words = sys.argv
    place = Place.of_unit()
    settings = place.settings()
    try:
        with alone(place.cache):
            say(drill_in_turn(settings, place) if "--in-turn" in words else drill(settings, place))
    except (DrillError, BackupError, RepositoryError, ProgramError, OSError) as error:
        sys.exit(f"drill of etcd {settings.role} failed: {error}")


def drill_in_turn(settings: Settings, place: Place) -> str:
    """A drill, if one is due and it is this member's to do: the last sound one's, as backups are the first one's."""
    sound = tuple(reversed(health(settings)))
    turn = in_turn(sound)
    if turn != settings.member:
        return f"it is the turn of {turn or 'no member'}"
    repository = place.repository()
    if not repository.exists():
        return "there is no backup yet"
    wait = due_in(settings, repository.snapshots(), time.time())
    if wait:
        return f"the next drill is due in {wait / 3600:.1f} h"
    return drill(settings, place)


def due_in(settings: Settings, snapshots: Sequence[Snapshot], now: float) -> float:
    """Seconds until the next drill, 0 when it is due.

    It is looked at every interval of backups, so what would be due before the next look is due now.
    """
    drills = [each for each in snapshots if each.kind == "drill"]
    passed = [each.time for each in drills if each.tags.get("ok") == "yes"]
    tried = [each.time for each in drills]
    next_one = max(passed[0] + settings.drill if passed else 0, tried[0] + settings.drill / RETRY if tried else 0)
    return max(0.0, next_one - settings.every / 2 - now)


def drill(settings: Settings, place: Place) -> str:
    """Try the newest backup, record how it went, clean the repository. DrillError when the backup is not good."""
    started = time.monotonic()
    repository = place.repository()
    repository.unlock()
    newest = repository.snapshots("backup")[:1]
    if not newest:
        raise DrillError("there is no backup yet")
    (snapshot,) = newest
    wrong, keys = "", 0
    # The file, what is restored from it, and room for the etcd's log.
    needed = 2 * int(snapshot.tags["size"]) + 256 * 2**20
    with working_folder(place.work, "a drill", needed) as folder:
        try:
            keys = tried(settings, repository, snapshot, folder)
            repository.check()
        except (DrillError, RepositoryError, ProgramError) as error:
            wrong = str(error)
        _record(settings, repository, snapshot, keys, wrong, folder)
    if wrong:
        raise DrillError(f"backup {snapshot.id[:8]} of {time.ctime(snapshot.time)}: {wrong}")
    repository.forget(settings.keep)
    repository.prune()
    return f"backup {snapshot.id[:8]} is good: {keys} keys, in {time.monotonic() - started:.1f} s"


def tried(settings: Settings, repository: Repository, snapshot: Snapshot, folder: Path) -> int:
    """Keys of an etcd made from a backup. DrillError, RepositoryError or ProgramError unless all is as recorded."""
    file = folder / settings.name
    repository.take(snapshot.id, settings.name, file)
    status: dict[str, Any] = json.loads(etcdutl("snapshot", "status", str(file), "--write-out=json"))
    _same("hash", format(status["hash"], "08x"), snapshot)
    with throw_away(settings, file, folder) as url:
        keys, revision = count(settings, url)
    _same("revision", str(revision), snapshot)
    _same("keys", str(keys), snapshot)
    return keys


def _same(fact: str, found: str, snapshot: Snapshot) -> None:
    recorded = snapshot.tags.get(fact)
    if found != recorded:
        raise DrillError(f"its {fact} is {found}, and {recorded} was recorded with it")


@contextmanager
def throw_away(settings: Settings, file: Path, folder: Path) -> Iterator[str]:
    """URL of an etcd of one member, made from a snapshot, which only the member's certificates open; gone afterwards."""
    client, peer = (f"https://127.0.0.1:{port}" for port in unused(2))
    data, pki = folder / "data", settings.pki
    own = ["--name=drill", f"--initial-cluster=drill={peer}", f"--initial-advertise-peer-urls={peer}"]
    own += [f"--data-dir={data}", f"--initial-cluster-token=drill-{os.getpid()}"]
    etcdutl("snapshot", "restore", str(file), *own)
    file.unlink()
    addresses = (f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}")
    keys = [f"--trusted-ca-file={pki}/ca.crt", f"--cert-file={pki}/server.crt", f"--key-file={pki}/server.key"]
    keys += [f"--peer-trusted-ca-file={pki}/ca.crt", f"--peer-cert-file={pki}/peer.crt"]
    keys += [f"--peer-key-file={pki}/peer.key", "--client-cert-auth=true", "--peer-client-cert-auth=true"]
    with (folder / "etcd.log").open("wb") as log:
        command = ["etcd", *own, *addresses, *keys, "--initial-cluster-state=existing", "--log-level=warn"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean(), cwd=str(folder)
        )
    try:
        _wait(settings, client, process, folder / "etcd.log")
        yield client
    finally:
        process.kill()
        process.wait()


def _wait(settings: Settings, url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            etcdctl(settings, [url], "endpoint", "health")
            return
        except ProgramError as error:
            if process.poll() is not None or time.monotonic() > until:
                said = log.read_text(errors="replace")[-1000:]
                raise DrillError(f"no etcd came up from it: {said or error}") from None
        time.sleep(0.2)


def _record(
    settings: Settings, repository: Repository, snapshot: Snapshot, keys: int, wrong: str, folder: Path
) -> None:
    """So that one listing of the repository tells which backups were tried."""
    tags = {
        "kind": "drill",
        "of": snapshot.id,
        "ok": "no" if wrong else "yes",
        "keys": str(keys),
        "cluster": settings.cluster,
        "etcd": settings.role,
        "member": settings.member,
    }
    if wrong:
        tags["why"] = " ".join(wrong.split())[:200]
    file = folder / "drill.json"
    file.write_text(json.dumps({**tags, "why": wrong}, indent=1) + "\n")
    repository.put(file, "drill.json", tags)


if __name__ == "__main__":
    main()
