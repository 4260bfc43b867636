"""``python3 -m menagerie_etcd.drill [--in-turn]``: test whether the newest backup can be restored.

The drill fetches the backup, compares its hash with the recorded one, and restores it. Then it starts a temporary etcd
from it on loopback, with the member's certificates, and counts the keys. It reads a share of the repository's data too,
and stores the result with the backups. Only a drill that succeeds removes old backups: that locks the repository, and
a run that is killed meanwhile blocks backups for half an hour.
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
"""A failed drill is retried after the interval of drills divided by this."""
_PATIENCE_S = 300.0
"""For the temporary etcd to answer: it reads the whole file first."""


class DrillError(Exception):
    """The backup failed the test; the text says why."""


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
    """Run a drill if one is due and it is the turn of this member: the last healthy one, as the first makes backups."""
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
    """Return the seconds until the next drill, 0 if it is due.

    The timer checks once per interval of backups, so a drill is due up to half of that early.
    """
    drills = [each for each in snapshots if each.kind == "drill"]
    passed = [each.time for each in drills if each.tags.get("ok") == "yes"]
    tried = [each.time for each in drills]
    next_one = max(passed[0] + settings.drill if passed else 0, tried[0] + settings.drill / RETRY if tried else 0)
    return max(0.0, next_one - settings.every / 2 - now)


def drill(settings: Settings, place: Place) -> str:
    """Test the newest backup, record the result, clean the repository. DrillError if the backup is bad."""
    started = time.monotonic()
    repository = place.repository()
    repository.unlock()
    newest = repository.snapshots("backup")[:1]
    if not newest:
        raise DrillError("there is no backup yet")
    (snapshot,) = newest
    wrong, keys = "", 0
    # The file, the data restored from it, and room for etcd's WAL.
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
    """Restore a backup and count its keys. DrillError, RepositoryError or ProgramError unless all is as recorded."""
    file = folder / settings.name
    repository.take(snapshot.id, settings.name, file)
    status: dict[str, Any] = json.loads(etcdutl("snapshot", "status", str(file), "--write-out=json"))
    _same("hash", format(status["hash"], "08x"), snapshot)
    with throw_away(settings, file, folder) as url:
        keys, revision = count(settings, url)
    _same("revision", str(revision), snapshot)
    _same("keys", str(keys), snapshot)
    return keys


def _same(fact: str, actual: str, snapshot: Snapshot) -> None:
    recorded = snapshot.tags.get(fact)
    if actual != recorded:
        raise DrillError(f"its {fact} is {actual}, but {recorded} was recorded")


@contextmanager
def throw_away(settings: Settings, file: Path, folder: Path) -> Iterator[str]:
    """Start a one-member etcd from a snapshot, open to the member's certificates only. Yield its URL, then stop it."""
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
                raise DrillError(f"no etcd started from it: {said or error}") from None
        time.sleep(0.2)


def _record(
    settings: Settings, repository: Repository, snapshot: Snapshot, keys: int, wrong: str, folder: Path
) -> None:
    """Store the result, so one listing of the repository shows which backups were tested."""
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
