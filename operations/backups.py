"""An etcd's backups as an operator sees them: read from their bucket, with the operator's own right to it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial

from clients.access import STATE, Access
from cluster.errors import FailedError, RefusedError
from cluster.spec import Backup, Cluster, RoleName
from etcd import backups as place
from etcd.host.menagerie_etcd.repository import Repository, RepositoryError, Snapshot
from etcd.members import settings
from network.addresses import ROLES
from operations.etcds.look import reach
from operations.etcds.snapshots import Snapshot as RestorePoint
from operations.words import duration
from tools.build import ensure

_CREDENTIALS = ("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_")
"""How environment variables begin by which clouds' libraries know an operator."""
_LOOK_S = 5.0
OLDEST_S = 3600.0
"""What a backup may be older than before it is called stale, by verbs whose way back it is."""


class NoBackupsError(RefusedError):
    """The spec asks for no backups of these etcds, or the cluster was built before it did."""

    code = "no-backups"


@dataclass(frozen=True)
class Kept:
    """A backup. `time` and `tried` are in seconds since 1970. `tried`: when the last drill of it was, None for never;
    `good`: what that found; `why`: what was wrong, "" for nothing."""

    etcd: str
    id: str
    time: float
    size: int
    revision: int
    keys: int
    member: str
    etcd_version: str
    cluster_id: str
    hash: str
    drill: str | None
    tried: float | None
    good: bool
    why: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class State:
    """How the backups of an etcd are. `verified_s`: age of the newest one that a drill found good, None without any."""

    etcd: str
    ok: bool
    told: str
    verified_s: float | None
    allowed_s: float
    backups: tuple[Kept, ...]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def with_backups(cluster: Cluster, chosen: str | None = None) -> dict[RoleName, Backup]:
    """Etcd -> what the spec says of its backups; of all, or of one. NoBackupsError where there are none."""
    found = {role: backup for role in ROLES if (backup := settings(cluster, role).backup) and chosen in (None, role)}
    if not found:
        what = f"etcd.{chosen}" if chosen else "no etcd"
        has = "has no backups" if chosen else "has backups"
        way = "write etcd.main.backup: {every: 15m, keep: 30d} in its spec, and run"
        raise NoBackupsError(f"{what} of {cluster.name} {has}; {way}: ./menagerie up {cluster.name}")
    return found


def backed_up(cluster: Cluster) -> bool:
    """Whether the spec asks for backups of any etcd."""
    return any(settings(cluster, role).backup for role in ROLES)


def repository(access: Access, role: RoleName) -> Repository:
    """Where the backups of an etcd are, and what opens them. NoBackupsError where the stack has none."""
    bucket = access.outputs.buckets.get(place.USE)
    password = access.backup_passwords.get(role)
    if bucket is None or password is None:
        name = access.outputs.cluster
        raise NoBackupsError(f"{name} was built without backups of etcd {role}; run: ./menagerie up {name}")
    name = access.outputs.cluster
    own = place.key_environment(access.bucket_key) or _credentials(os.environ)
    cache = STATE / name / "backups"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = str(ensure(["restic"])["restic"])
    return Repository(
        place.url(bucket, name, role), password, {**own, **place.environment(bucket)}, program=program, cache=cache
    )


def read_states(cluster: Cluster, access: Access, chosen: str | None = None, now: float | None = None) -> list[State]:
    """Of all etcds with backups, or of one. A bucket that can't be read is a state that is not ok."""
    found = []
    for role, backup in with_backups(cluster, chosen).items():
        try:
            snapshots = repository(access, role).snapshots()
        except RepositoryError as error:
            found.append(State(role, False, str(error), None, allowed_s(backup), ()))
        else:
            found.append(state(role, backup, snapshots, time.time() if now is None else now))
    return found


def snapshots(cluster: Cluster, access: Access, role: RoleName) -> tuple[RestorePoint, ...]:
    """The backups of an etcd, as a restore chooses from them. NoBackupsError, RepositoryError."""
    with_backups(cluster, role)
    return tuple(_point(cluster.name, each) for each in backups_of(role, repository(access, role).snapshots()))


def _point(cluster: str, kept: Kept) -> RestorePoint:
    return RestorePoint(
        id=kept.id,
        etcd=kept.etcd,
        time=datetime.fromtimestamp(kept.time, UTC),
        size=kept.size,
        revision=kept.revision,
        hash=kept.hash,
        keys=kept.keys,
        cluster=cluster,
        cluster_id=kept.cluster_id,
        etcd_version=kept.etcd_version,
        verified_at=datetime.fromtimestamp(kept.tried, UTC) if kept.tried and kept.good else None,
    )


def newest_age(cluster: Cluster, access: Access) -> Callable[[], float | None] | None:
    """How to ask for the age of the newest backup of main, in seconds; None where the spec wants none."""
    if settings(cluster, "main").backup is None:
        return None

    def age() -> float | None:
        newest = repository(access, "main").snapshots("backup")[:1]
        return time.time() - newest[0].time if newest else None

    return age


def stale(cluster: str, age: Callable[[], float | None] | None) -> str:
    """Why there is no fresh backup of main, with what helps; "" where there is, or where nothing keeps any (`newest_age`)."""
    if age is None:
        return ""
    help_ = f"make one first: ./menagerie etcd backup {cluster}"
    try:
        found = age()
    except RepositoryError as error:
        return f"{error}; {help_}"
    if found is None:
        return f"there is no backup of etcd main; {help_}"
    if found <= OLDEST_S:
        return ""
    return f"the newest backup of etcd main is {found / 60:.0f} minutes old, and at most {OLDEST_S / 60:.0f} are wanted; {help_}"


def state(role: str, backup: Backup, snapshots: Sequence[Snapshot], now: float) -> State:
    """What a listing of the repository says."""
    kept = backups_of(role, snapshots)
    age, allowed = verified_age(snapshots, now), allowed_s(backup)
    newest = next(iter(kept), None)
    if newest is None:
        told = "no backup was ever made"
    elif age is None:
        told = f"{len(kept)} backups, and none was ever found good by a drill"
    else:
        told = f"{len(kept)} backups; the newest that a drill found good is {duration(age)} old"
    if newest and newest.tried and not newest.good:
        told += f"; the last drill of the newest failed: {newest.why}"
    if age is not None and age > allowed:
        told += f", and may be {duration(allowed)} old at most"
    return State(role, age is not None and age <= allowed, told, age, allowed, kept)


def allowed_s(backup: Backup) -> float:
    """How old the newest backup that was found good may be, in seconds: twice the interval, and the time between drills.

    When a drill ends, what it tried may be an interval old, and the next one is looked for once an interval.
    """
    return (2 * backup.every + backup.drill) / 1000


def verified_age(snapshots: Sequence[Snapshot], now: float) -> float | None:
    """Age in seconds of the newest backup whose last drill found it good; None where there is none."""
    good = (each.time for each in backups_of("", snapshots) if each.good)
    return next((now - time_ for time_ in good), None)


def backups_of(role: str, snapshots: Sequence[Snapshot]) -> tuple[Kept, ...]:
    """The backups of a listing, newest first, each with what the last drill of it found."""
    drills: dict[str, Snapshot] = {}
    for each in sorted(snapshots, key=lambda snapshot: snapshot.time):
        if each.kind == "drill":
            drills[each.tags.get("of", "")] = each
    made = sorted((each for each in snapshots if each.kind == "backup"), key=lambda each: -each.time)
    return tuple(_kept(role, each, drills.get(each.id)) for each in made)


def _kept(role: str, snapshot: Snapshot, drill: Snapshot | None) -> Kept:
    tags = snapshot.tags
    return Kept(
        etcd=role,
        id=snapshot.id,
        time=snapshot.time,
        size=int(tags.get("size", 0)),
        revision=int(tags.get("revision", 0)),
        keys=int(tags.get("keys", 0)),
        member=tags.get("member", ""),
        etcd_version=tags.get("etcd_version", ""),
        cluster_id=tags.get("cluster_id", ""),
        hash=tags.get("hash", ""),
        drill=drill.id if drill else None,
        tried=drill.time if drill else None,
        good=bool(drill and drill.tags.get("ok") == "yes"),
        why=drill.tags.get("why", "") if drill else "",
    )


def make(cluster: Cluster, access: Access, chosen: str | None, report: Callable[[str], None]) -> dict[str, Kept]:
    """Etcd -> the backup that one of its members' hosts has made now. NoBackupsError, FailedError, AgentError."""
    found: dict[str, Kept] = {}
    for role, member in makers(cluster, access, chosen).items():
        where, agent = repository(access, role), reach(cluster, access, role).agents[member]
        report(f"etcd {role}: {member} makes a backup")
        found[role] = _kept(role, back_up(where, partial(agent.act, "backup", report)), None)
    return found


def makers(cluster: Cluster, access: Access, chosen: str | None) -> dict[RoleName, str]:
    """Etcd -> the member whose host makes a backup when somebody asks for one. NoBackupsError."""
    found: dict[RoleName, str] = {}
    for role in with_backups(cluster, chosen):
        etcd = reach(cluster, access, role)
        # Of members that answer a follower first: the leader has the most to do.
        statuses = etcd.client.statuses()
        found[role] = min(statuses, key=lambda name: (statuses[name].leads, name), default=etcd.members[0].name)
    return found


def back_up(
    repository: Repository, ask: Callable[[], object], patience_s: float = 600, look_s: float = _LOOK_S
) -> Snapshot:
    """Have a backup made now, and wait until the repository has it.

    ask: has a member's host start its unit (`etcd.backups.backup_unit`). FailedError when none came in that time.
    """
    known = {each.id for each in repository.snapshots("backup")} if repository.exists() else set()
    ask()
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if repository.exists() and (new := [each for each in repository.snapshots("backup") if each.id not in known]):
            return new[0]
        time.sleep(look_s)
    raise FailedError(
        f"no new backup in {repository.url} within {patience_s:.0f} s; the journal of the unit on the host says why",
        code="not-backed-up",
    )


def _credentials(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_CREDENTIALS)}
