"""How up to date the shipped audit logs of API servers are: the newest object of each host, by the bucket's clock.

Names contain increasing numbers, in folders of a thousand (`components/control_plane/host/audit_log.py`). A few list
requests find the newest object, whatever the total.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError

from clients.access import Access
from clients.buckets import open_bucket
from clients.kube import Kube
from cluster.errors import FailedError
from components.control_plane import audit_log

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from obstore.store import ObjectStore

_LEASES = "apiserver.kubernetes.io/identity=kube-apiserver"
_HOST = "kubernetes.io/hostname"
_LIVES_S = 60
"""kube-apiserver renews its Lease every ten seconds (pkg/controlplane/apiserver, IdentityLeaseRenewIntervalPeriod)."""
_BOOTS = 8
"""How many of a host's last boots are checked: its clock may have been wrong in one of them."""


class BucketSilentError(FailedError):
    """The bucket does not respond or refuses, or the cluster is older than its bucket; the text says which."""

    code = "cloud-call"


@dataclass(frozen=True)
class Newest:
    """A host's newest object. at: when it was written, by the bucket's clock. gaps: how many in the last thousand objects."""

    at: datetime
    gaps: int


@dataclass(frozen=True)
class RunningServer:
    """A running API server. since: when the first API server on a host of that name started."""

    host: str
    since: datetime


def newest(access: Access, cluster: str) -> dict[str, Newest]:
    """Return host -> its newest object, also of removed hosts. Raises BucketSilentError."""
    bucket = access.outputs.buckets.get(audit_log.USE)
    if bucket is None:
        raise BucketSilentError(f"the cluster has no bucket for audit logs yet; run: ./menagerie up {cluster}")
    try:
        store = open_bucket(bucket, access.bucket_key, access.outputs.ca_pem)
        return dict(_newest(store, audit_log.prefix(cluster).rstrip("/")))
    except (BaseError, ValueError, OSError) as error:
        reason = str(error).split("\n\nDebug source")[0].strip().replace("\n", " ")
        raise BucketSilentError(f"can't read bucket {bucket.name}: {reason}") from None


def _newest(store: ObjectStore, prefix: str) -> Iterator[tuple[str, Newest]]:
    for host in _folders(store, prefix):
        by_boot = [_of_boot(store, boot) for boot in _folders(store, host)[-_BOOTS:]]
        objects = [newest_object for newest_object in by_boot if newest_object]
        if objects:
            yield host.rpartition("/")[2], max(objects, key=lambda newest_object: newest_object.at)


def _of_boot(store: ObjectStore, boot: str) -> Newest | None:
    blocks = _folders(store, boot)
    if not blocks:
        return None
    objects = store.list_with_delimiter(blocks[-1])["objects"]
    if not objects:
        return None
    return Newest(max(entry["last_modified"] for entry in objects), sum("-gap." in entry["path"] for entry in objects))


def _folders(store: ObjectStore, prefix: str) -> list[str]:
    return sorted(store.list_with_delimiter(prefix)["common_prefixes"])


def servers(api: ApiClient, now: datetime) -> tuple[RunningServer, ...]:
    """Return the running API servers, by their Leases."""
    leases = Kube(api).list("Lease", "kube-system", labels=_LEASES)
    return tuple(
        RunningServer(
            lease["metadata"]["labels"][_HOST], datetime.fromisoformat(lease["metadata"]["creationTimestamp"])
        )
        for lease in sorted(leases, key=lambda lease: str(lease["metadata"]["name"]))
        if _HOST in lease["metadata"]["labels"]
        and (now - datetime.fromisoformat(lease["spec"]["renewTime"])).total_seconds() < _LIVES_S
    )


def shipped(newest: Mapping[str, Newest], server: RunningServer, now: datetime) -> tuple[bool, str]:
    """Return whether a server's log is shipped in time, and a sentence about it."""
    newest_object, is_young = newest.get(server.host), (now - server.since).total_seconds() < audit_log.STALE_S
    if newest_object is None:
        return (
            is_young,
            "audit log not shipped yet; the API server started a few minutes ago"
            if is_young
            else "audit log was never shipped",
        )
    age_s = max((now - newest_object.at).total_seconds(), 0)
    gaps = (
        f"; {newest_object.gaps} gap{'s' if newest_object.gaps > 1 else ''}, where lines were lost"
        if newest_object.gaps
        else ""
    )
    return age_s < audit_log.STALE_S, f"audit log shipped {_ago(age_s)}{gaps}"


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
