"""Snapshots to restore from: their facts, and which are refused."""

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
"""An older snapshot is restored only on request: everything since then is lost."""


class EtcdRefusedError(RefusedError):
    """A verb refuses to start and has changed nothing; the text says why and what helps."""

    code = "etcd-refused"


@dataclass(frozen=True)
class EtcdSnapshot:
    """A snapshot, with the facts recorded at its creation.

    id: in the repository. hash: from etcdutl, eight hex digits. keys: their number at that revision. size: bytes.
    cluster_id: hex, of its etcd. verified_at: its last successful drill. path: set if it is an operator's file.
    None means that a fact was not recorded.
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


def choose(known: Sequence[EtcdSnapshot], snapshot_id: str = "") -> EtcdSnapshot:
    """Return the snapshot with that ID or unique prefix; without an ID the newest verified one, else the newest.

    Raises EtcdRefusedError if there is none.
    """
    newest_first = sorted(known, key=lambda snapshot: snapshot.time, reverse=True)
    if not newest_first:
        raise EtcdRefusedError("there is no snapshot; give one as a file: --file SNAPSHOT")
    if not snapshot_id:
        return next((snapshot for snapshot in newest_first if snapshot.verified_at), newest_first[0])
    matches = [snapshot for snapshot in newest_first if snapshot.id.startswith(snapshot_id)]
    if len(matches) != 1:
        what = "no snapshot" if not matches else f"{len(matches)} snapshots"
        raise EtcdRefusedError(f"{what} with an ID that starts with {snapshot_id}; the newest is {newest_first[0].id}")
    return matches[0]


def from_file(path: Path, role: str, *, no_facts: bool) -> EtcdSnapshot:
    """Return an operator's snapshot file, with its facts from FILE.json in the same folder.

    Raises EtcdRefusedError if there are no facts, unless `no_facts`: then only the digest at the file's end is checked.
    """
    if not path.is_file():
        raise EtcdRefusedError(f"{path}: no such file")
    bare = EtcdSnapshot(
        id=path.name,
        etcd=role,
        time=datetime.fromtimestamp(path.stat().st_mtime, UTC),
        size=path.stat().st_size,
        path=path,
    )
    facts_file = path.with_name(f"{path.name}.json")
    if no_facts:
        return bare
    if not facts_file.exists():
        raise EtcdRefusedError(
            f"{path} has no facts in {facts_file.name} next to it, so its cluster is unknown; "
            "to restore it anyway: --no-facts"
        )
    try:
        return _with_facts(bare, json.loads(read_text(facts_file)))
    except UnreadableError as error:
        raise EtcdRefusedError(str(error)) from None
    except _NotFactsError as error:
        raise EtcdRefusedError(f"{facts_file} is not a snapshot's facts: {error}") from None
    except (ValueError, RecursionError):
        raise EtcdRefusedError(f"{facts_file} is not a snapshot's facts: it isn't JSON") from None


class _NotFactsError(Exception):
    """A file of facts is incomplete or invalid. The text has no values from the file."""


def _with_facts(bare: EtcdSnapshot, parsed: object) -> EtcdSnapshot:
    if not isinstance(parsed, dict):
        raise _NotFactsError("it is not a JSON object")
    names = {field_.name for field_ in fields(EtcdSnapshot)} - {"id", "size", "path"}
    facts = {name: str(value) for name, value in parsed.items() if name in names and value is not None}
    missing = [name for name in ("etcd", "time", "revision", "hash", "cluster") if name not in facts]
    if missing:
        raise _NotFactsError(f"it lacks {', '.join(missing)}")
    read: dict[str, Callable[[str], Any]] = {
        "time": datetime.fromisoformat,
        "verified_at": datetime.fromisoformat,
        "revision": int,
        "keys": int,
    }
    values: dict[str, Any] = {}
    for name, value in facts.items():
        try:
            values[name] = read.get(name, str)(value)
        except ValueError:
            raise _NotFactsError(f"its {name} is invalid") from None
    return replace(bare, **values)


def refuse_wrong(
    snapshot: EtcdSnapshot, cluster: str, role: str, cluster_ids: frozenset[str], now: datetime, *, accept_stale: bool
) -> tuple[str, ...]:
    """Return warnings. Raises EtcdRefusedError if a snapshot is from another etcd, or too old.

    cluster_ids: all that this etcd has had, from its members and its snapshots.
    """
    if snapshot.cluster not in (None, cluster) or snapshot.etcd != role:
        whose = f"etcd {snapshot.etcd} of {snapshot.cluster or 'an unknown cluster'}"
        raise EtcdRefusedError(
            f"snapshot {snapshot.id} is from {whose}, not from etcd {role} of {cluster}. Nothing was changed."
        )
    if snapshot.cluster_id and cluster_ids and snapshot.cluster_id not in cluster_ids:
        ids = ", ".join(sorted(cluster_ids))
        raise EtcdRefusedError(
            f"snapshot {snapshot.id} is from an etcd with cluster ID {snapshot.cluster_id}; this etcd has had {ids}. "
            "Nothing was changed."
        )
    old = now - snapshot.time
    if old > FRESH and not accept_stale:
        raise EtcdRefusedError(
            f"snapshot {snapshot.id} is {ago(old)} old; everything since then would be lost. Nothing was changed. "
            "To restore it anyway: --accept-stale"
        )
    not_verified = () if snapshot.verified_at else (f"snapshot {snapshot.id} was never tested by a drill",)
    no_facts = (
        () if snapshot.hash else (f"snapshot {snapshot.id} has no recorded facts; only its own digest is checked",)
    )
    return (*not_verified, *no_facts)


def better(known: Sequence[EtcdSnapshot], bad: EtcdSnapshot) -> str:
    """Return the newest other snapshot and how much older it is, as a sentence; "" if there is none."""
    others = sorted(
        (snapshot for snapshot in known if snapshot.id != bad.id), key=lambda snapshot: snapshot.time, reverse=True
    )
    good = next((snapshot for snapshot in others if snapshot.verified_at), next(iter(others), None))
    if good is None:
        return ""
    apart = bad.time - good.time
    difference = f"{ago(apart)} older" if apart > timedelta() else f"{ago(-apart)} newer"
    return f" Newest good one: {good.id}, {difference}"


def ago(span: timedelta) -> str:
    """Format an approximate duration for people."""
    minutes = span.total_seconds() / 60
    if minutes < 120:
        return f"{minutes:.0f} minutes"
    return f"{minutes / 60:.0f} hours" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"
