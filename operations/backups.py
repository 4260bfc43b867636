"""An etcd's backups, read from their bucket with the operator's own permissions."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial

from clients.access import STATE, Access
from cluster.errors import FailedError, RefusedError
from cluster.spec import Backup, Cluster, RoleName
from cluster.waiting import poll
from etcd import backups as place
from etcd.host.menagerie_etcd.programs import clean
from etcd.host.menagerie_etcd.repository import Repository, RepositoryError, Snapshot
from etcd.members import settings
from network.addresses import ROLES
from operations.etcds.look import reach
from operations.etcds.snapshots import EtcdSnapshot as RestorePoint
from operations.words import duration
from tools.build import ensure

_CREDENTIALS = ("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_")
"""Prefixes of environment variables with an operator's cloud credentials."""
_LOOK_S = 5.0
OLDEST_S = 3600.0
"""Maximum age of a backup for verbs that need it as their way back."""


_LISTED_S = 30.0
"""For a list of snapshots. restic itself tries for 15 minutes to reach a bucket that does not answer."""


class NoBackupsError(RefusedError):
    """The spec has no backups of these etcds, or the cluster was built before they were added."""

    code = "no-backups"


@dataclass(frozen=True)
class KeptBackup:
    """A backup. `time` and `tried` are Unix times. `tried`: its last drill, None for never; `good`: whether that drill
    passed; `why`: what failed, "" for nothing."""

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
class BackupState:
    """State of an etcd's backups. `verified_s`: age of the newest backup that passed a drill, None if there is none."""

    etcd: str
    ok: bool
    summary: str
    verified_s: float | None
    allowed_s: float
    backups: tuple[KeptBackup, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "etcd": self.etcd,
            "ok": self.ok,
            "told": self.summary,
            "verified_s": self.verified_s,
            "allowed_s": self.allowed_s,
            "backups": [backup.to_json() for backup in self.backups],
        }


def with_backups(cluster: Cluster, chosen: str | None = None) -> dict[RoleName, Backup]:
    """Return etcd -> its backup settings, for all etcds or one. Raises NoBackupsError if there are none."""
    settings_by_etcd = {
        role: backup for role in ROLES if (backup := settings(cluster, role).backup) and chosen in (None, role)
    }
    if not settings_by_etcd:
        what = f"etcd.{chosen}" if chosen else "no etcd"
        has = "has no backups" if chosen else "has backups"
        way = "add etcd.main.backup: {every: 15m, keep: 30d} to its spec and run"
        raise NoBackupsError(f"{what} of {cluster.name} {has}; {way}: ./menagerie up {cluster.name}")
    return settings_by_etcd


def backed_up(cluster: Cluster) -> bool:
    """Return whether the spec has backups of any etcd."""
    return any(settings(cluster, role).backup for role in ROLES)


def repository(access: Access, role: RoleName) -> Repository:
    """Return the backup repository of an etcd. Raises NoBackupsError if the stack has none."""
    bucket = access.outputs.buckets.get(place.USE)
    password = access.backup_passwords.get(role)
    if bucket is None or password is None:
        name = access.outputs.cluster
        raise NoBackupsError(f"{name} was built without backups of etcd {role}; run: ./menagerie up {name}")
    name = access.outputs.cluster
    credentials = place.key_environment(access.bucket_key) or _credentials(os.environ)
    cache = STATE / name / "backups"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = str(ensure(["restic"])["restic"])
    return Repository(
        place.url(bucket, name, role),
        password,
        {**credentials, **place.environment(bucket)},
        program=program,
        cache=cache,
    )


def read_states(
    cluster: Cluster, access: Access, chosen: str | None = None, now: float | None = None
) -> list[BackupState]:
    """Return the state of all etcds with backups, or of one. If a bucket can't be read, its state is not ok."""
    states = []
    for role, backup in with_backups(cluster, chosen).items():
        try:
            own = repository(access, role)
            refuse_silent(own)
            snapshots = own.snapshots()
        except RepositoryError as error:
            states.append(BackupState(role, False, str(error), None, allowed_s(backup), ()))
        else:
            states.append(state(role, backup, snapshots, time.time() if now is None else now))
    return states


def refuse_silent(own: Repository, within_s: float = _LISTED_S) -> None:
    """Raise RepositoryError if the bucket does not answer in time. Any answer is good here, also a refusal."""
    given = {"RESTIC_REPOSITORY": own.url, "RESTIC_PASSWORD": own.password, "HOME": os.environ.get("HOME", "")}
    try:
        subprocess.run(
            [own.program, "--no-cache", "--no-lock", "cat", "config"],
            env=clean({**given, **own.environment}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RepositoryError(f"{own.url} does not answer within {within_s:.0f} s") from None


def snapshots(cluster: Cluster, access: Access, role: RoleName) -> tuple[RestorePoint, ...]:
    """Return an etcd's backups as restore points. Raises NoBackupsError and RepositoryError."""
    with_backups(cluster, role)
    return tuple(_point(cluster.name, each) for each in backups_of(role, repository(access, role).snapshots()))


def _point(cluster: str, kept: KeptBackup) -> RestorePoint:
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
    """Return a function for the age of main's newest backup, in seconds; None if the spec has no backups of main."""
    if settings(cluster, "main").backup is None:
        return None

    def age() -> float | None:
        newest = repository(access, "main").snapshots("backup")[:1]
        return time.time() - newest[0].time if newest else None

    return age


def stale(cluster: str, age: Callable[[], float | None] | None) -> str:
    """Return why main has no recent backup and how to get one; "" if it has, or has no backups at all (`newest_age`)."""
    if age is None:
        return ""
    help_ = f"make one first; run: ./menagerie etcd backup {cluster}"
    try:
        age_s = age()
    except RepositoryError as error:
        return f"{error}; {help_}"
    if age_s is None:
        return f"there is no backup of etcd main; {help_}"
    if age_s <= OLDEST_S:
        return ""
    return f"the newest backup of etcd main is {age_s / 60:.0f} minutes old, the limit is {OLDEST_S / 60:.0f}; {help_}"


def state(role: str, backup: Backup, snapshots: Sequence[Snapshot], now: float) -> BackupState:
    """Judge a listing of the repository."""
    kept = backups_of(role, snapshots)
    age, allowed = verified_age(snapshots, now), allowed_s(backup)
    newest = next(iter(kept), None)
    if newest is None:
        summary = "there has never been a backup"
    elif age is None:
        summary = f"{len(kept)} backups; none has ever passed a drill"
    else:
        summary = f"{len(kept)} backups; the newest that passed a drill is {duration(age)} old"
    if newest and newest.tried and not newest.good:
        summary += f"; the last drill of the newest failed: {newest.why}"
    if age is not None and age > allowed:
        summary += f"; the limit is {duration(allowed)}"
    return BackupState(role, age is not None and age <= allowed, summary, age, allowed, kept)


def allowed_s(backup: Backup) -> float:
    """Return the maximum age of the newest backup that passed a drill, in seconds: two intervals plus the time between drills.

    A backup can be one interval old when its drill ends, and whether a drill is due is checked once per interval.
    """
    return (2 * backup.every + backup.drill) / 1000


def verified_age(snapshots: Sequence[Snapshot], now: float) -> float | None:
    """Return the age in seconds of the newest backup that passed its last drill; None if there is none."""
    times = (backup.time for backup in backups_of("", snapshots) if backup.good)
    return next((now - time_ for time_ in times), None)


def backups_of(role: str, snapshots: Sequence[Snapshot]) -> tuple[KeptBackup, ...]:
    """Return the backups of a listing, newest first, each with the result of its last drill."""
    drills: dict[str, Snapshot] = {}
    for each in sorted(snapshots, key=lambda snapshot: snapshot.time):
        if each.kind == "drill":
            drills[each.tags.get("of", "")] = each
    backups = sorted((each for each in snapshots if each.kind == "backup"), key=lambda each: -each.time)
    return tuple(_kept(role, each, drills.get(each.id)) for each in backups)


def _kept(role: str, snapshot: Snapshot, drill: Snapshot | None) -> KeptBackup:
    tags = snapshot.tags
    return KeptBackup(
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


def make(cluster: Cluster, access: Access, chosen: str | None, report: Callable[[str], None]) -> dict[str, KeptBackup]:
    """Make a backup of each etcd on one member's host; return etcd -> backup.

    Raises NoBackupsError, FailedError, AgentError.
    """
    backups: dict[str, KeptBackup] = {}
    for role, member in makers(cluster, access, chosen).items():
        where, agent = repository(access, role), reach(cluster, access, role).agents[member]
        report(f"etcd {role}: making a backup on {member}")
        backups[role] = _kept(role, back_up(where, partial(agent.act, "backup", report)), None)
    return backups


def makers(cluster: Cluster, access: Access, chosen: str | None) -> dict[RoleName, str]:
    """Return etcd -> the member whose host makes a requested backup. Raises NoBackupsError."""
    members: dict[RoleName, str] = {}
    for role in with_backups(cluster, chosen):
        etcd = reach(cluster, access, role)
        # Prefer a follower that responds: the leader has the most load.
        statuses = etcd.client.statuses()
        members[role] = min(statuses, key=lambda name: (statuses[name].leads, name), default=etcd.members[0].name)
    return members


def back_up(
    repository: Repository, ask: Callable[[], object], patience_s: float = 600, look_s: float = _LOOK_S
) -> Snapshot:
    """Make a backup now and wait until the repository has it.

    ask: makes a member's host start its unit (`etcd.backups.backup_unit`). Raises FailedError if there is no new backup
    within `patience_s`.
    """
    known_ids = {snapshot.id for snapshot in repository.snapshots("backup")} if repository.exists() else set()

    def new() -> list[Snapshot]:
        snapshots = repository.snapshots("backup") if repository.exists() else ()
        return [snapshot for snapshot in snapshots if snapshot.id not in known_ids]

    ask()
    if snapshots := poll(new, patience_s, look_s):
        return snapshots[0]
    raise FailedError(
        f"no new backup in {repository.url} within {patience_s:.0f} s; see the unit's journal on the host",
        code="not-backed-up",
    )


def _credentials(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_CREDENTIALS)}
