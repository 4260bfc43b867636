"""Snapshots to restore from: what is known of each, and which is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cluster.errors import RefusedError
from cluster.reading import UnreadableError, read_text

FRESH = timedelta(hours=24)
"""An older snapshot is restored only on demand: what came since is lost."""


class EtcdRefusedError(RefusedError):
    """A verb won't begin, and has touched nothing; the text says why and what helps."""

    code = "etcd-refused"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot and the facts that were recorded when it was made.

    id: in the repository. hash: of etcdutl, eight hex digits. keys: at that revision. size: bytes. cluster_id: hex, of the
    etcd that it came from. verified_at: when it was last restored as a drill. path: where it is a file of the operator's.
    A fact that is None was not recorded.
    """

    id: str
    etcd: str
    time: datetime
    size: int
    revision: int | None = None
    hash: str | None = None
    keys: int | None = None
    cluster: str | None = None
    cluster_id: str | None = None
    etcd_version: str | None = None
    verified_at: datetime | None = None
    path: Path | None = None


def choose(known: Sequence[Snapshot], snapshot_id: str = "") -> Snapshot:
    """The snapshot of that id, or whose id begins so; without one the newest verified, else the newest.

    EtcdRefusedError where there is none.
    """
    newest_first = sorted(known, key=lambda each: each.time, reverse=True)
    if not newest_first:
        raise EtcdRefusedError("there is no snapshot; give one as a file: --file SNAPSHOT")
    if not snapshot_id:
        return next((each for each in newest_first if each.verified_at), newest_first[0])
    found = [each for each in newest_first if each.id.startswith(snapshot_id)]
    if len(found) != 1:
        what = "no snapshot" if not found else f"{len(found)} snapshots"
        raise EtcdRefusedError(f"{what} with an id that begins with {snapshot_id}; the newest is {newest_first[0].id}")
    return found[0]


def from_file(path: Path, role: str, *, no_facts: bool) -> Snapshot:
    """A snapshot of the operator's, with its facts from FILE.json beside it.

    EtcdRefusedError where there are no facts, unless `no_facts`: then it is taken as it is, by the digest that it ends with.
    """
    if not path.is_file():
        raise EtcdRefusedError(f"{path}: no such file")
    bare = Snapshot(
        id=path.name,
        etcd=role,
        time=datetime.fromtimestamp(path.stat().st_mtime, UTC),
        size=path.stat().st_size,
        path=path,
    )
    beside = path.with_name(f"{path.name}.json")
    if no_facts:
        return bare
    if not beside.exists():
        raise EtcdRefusedError(
            f"{path} has no facts beside it in {beside.name}, so nothing says which cluster it is from; "
            "to restore it all the same: --no-facts"
        )
    try:
        return _with_facts(bare, json.loads(read_text(beside)))
    except UnreadableError as error:
        raise EtcdRefusedError(str(error)) from None
    except _NotFactsError as error:
        raise EtcdRefusedError(f"{beside} is not a snapshot's facts: {error}") from None
    except (ValueError, RecursionError):
        raise EtcdRefusedError(f"{beside} is not a snapshot's facts: it isn't JSON") from None


class _NotFactsError(Exception):
    """What a file lacks that should hold facts; nothing that it holds."""


def _with_facts(bare: Snapshot, told: object) -> Snapshot:
    if not isinstance(told, dict):
        raise _NotFactsError("it holds no object")
    names = {each.name for each in fields(Snapshot)} - {"id", "size", "path"}
    facts = {name: str(value) for name, value in told.items() if name in names and value is not None}
    missing = [name for name in ("etcd", "time", "revision", "hash", "cluster") if name not in facts]
    if missing:
        raise _NotFactsError(f"it lacks {', '.join(missing)}")
    read: dict[str, Callable[[str], Any]] = {
        "time": datetime.fromisoformat,
        "verified_at": datetime.fromisoformat,
        "revision": int,
        "keys": int,
    }
    known: dict[str, Any] = {}
    for name, value in facts.items():
        try:
            known[name] = read.get(name, str)(value)
        except ValueError:
            raise _NotFactsError(f"its {name} is none") from None
    return replace(bare, **known)


def refuse_wrong(
    snapshot: Snapshot, cluster: str, role: str, cluster_ids: frozenset[str], now: datetime, *, accept_stale: bool
) -> tuple[str, ...]:
    """What to warn of. EtcdRefusedError where a snapshot is another etcd's, or too old.

    cluster_ids: those that this etcd has had: of its members, and of its snapshots.
    """
    if snapshot.cluster not in (None, cluster) or snapshot.etcd != role:
        whose = f"etcd {snapshot.etcd} of {snapshot.cluster or 'a cluster that nobody wrote down'}"
        raise EtcdRefusedError(
            f"snapshot {snapshot.id} is of {whose}, not of etcd {role} of {cluster}. Nothing was changed."
        )
    if snapshot.cluster_id and cluster_ids and snapshot.cluster_id not in cluster_ids:
        known = ", ".join(sorted(cluster_ids))
        raise EtcdRefusedError(
            f"snapshot {snapshot.id} is of the etcd with cluster id {snapshot.cluster_id}; this one has had {known}. "
            "Nothing was changed."
        )
    old = now - snapshot.time
    if old > FRESH and not accept_stale:
        raise EtcdRefusedError(
            f"snapshot {snapshot.id} is {ago(old)} old; all that came since would be lost. Nothing was changed. "
            "To restore it all the same: --accept-stale"
        )
    checked = () if snapshot.verified_at else (f"snapshot {snapshot.id} was never restored as a drill",)
    bare = () if snapshot.hash else (f"nothing is recorded of {snapshot.id}; only its own digest is checked",)
    return (*checked, *bare)


def better(known: Sequence[Snapshot], bad: Snapshot) -> str:
    """The newest other snapshot, and how much older it is, as a sentence; "" where there is none."""
    others = sorted((each for each in known if each.id != bad.id), key=lambda each: each.time, reverse=True)
    good = next((each for each in others if each.verified_at), next(iter(others), None))
    if good is None:
        return ""
    apart = bad.time - good.time
    told = f"{ago(apart)} older" if apart > timedelta() else f"{ago(-apart)} newer"
    return f" Newest good one: {good.id}, {told}"


def ago(span: timedelta) -> str:
    """About how long, for people."""
    minutes = span.total_seconds() / 60
    if minutes < 120:
        return f"{minutes:.0f} minutes"
    return f"{minutes / 60:.0f} hours" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"
