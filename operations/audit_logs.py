"""How far API servers' audit logs are shipped: the newest object of each host, by the bucket's own clock.

Names hold numbers that only grow, in folders of a thousand (`components/control_plane/host/audit_log.py`), so the newest is found with
a few lists however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kubernetes import client
from obstore.exceptions import BaseError

from clients.access import API_TIMEOUT_S, Access
from clients.buckets import open_bucket
from components.control_plane import audit_log

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_LEASES = "apiserver.kubernetes.io/identity=kube-apiserver"
_HOST = "kubernetes.io/hostname"
_LIVES_S = 60
"""kube-apiserver renews its Lease every ten seconds (pkg/controlplane/apiserver, IdentityLeaseRenewIntervalPeriod)."""
_BOOTS = 8
"""Of a host that boots again and again, how many of its last boots are looked at: a clock may have been wrong in one."""


class BucketSilentError(Exception):
    """The bucket does not answer or refuses, or the cluster was built before it had one; the text says which."""


@dataclass(frozen=True)
class Newest:
    """The newest object of a host. at: when it was written, by the bucket's clock. gaps: among the last thousand objects."""

    at: datetime
    gaps: int


@dataclass(frozen=True)
class Server:
    """An API server that runs. since: when it, or one before it on a host of that name, first did."""

    host: str
    since: datetime


def newest(access: Access, cluster: str) -> dict[str, Newest]:
    """Host -> its newest object, also of hosts that are gone. Raises BucketSilentError."""
    bucket = access.outputs.buckets.get(audit_log.USE)
    if bucket is None:
        raise BucketSilentError(f"the cluster has no bucket for audit logs yet: ./menagerie up {cluster}")
    try:
        store = open_bucket(bucket, access.bucket_key, access.outputs.ca_pem)
        return dict(_newest(store, audit_log.prefix(cluster).rstrip("/")))
    except (BaseError, ValueError, OSError) as error:
        told = str(error).split("\n\nDebug source")[0].strip().replace("\n", " ")
        raise BucketSilentError(f"bucket {bucket.name} does not answer as it should: {told}") from None


def _newest(store: ObjectStore, prefix: str) -> Iterator[tuple[str, Newest]]:
    for host in _folders(store, prefix):
        last = [_of_boot(store, boot) for boot in _folders(store, host)[-_BOOTS:]]
        found = [each for each in last if each]
        if found:
            yield host.rpartition("/")[2], max(found, key=lambda each: each.at)


def _of_boot(store: ObjectStore, boot: str) -> Newest | None:
    blocks = _folders(store, boot)
    if not blocks:
        return None
    objects = store.list_with_delimiter(blocks[-1])["objects"]
    if not objects:
        return None
    return Newest(max(each["last_modified"] for each in objects), sum("-gap." in each["path"] for each in objects))


def _folders(store: ObjectStore, prefix: str) -> list[str]:
    return sorted(store.list_with_delimiter(prefix)["common_prefixes"])


def servers(api: client.ApiClient, now: datetime) -> tuple[Server, ...]:
    """Those that run, as they say by their Leases."""
    leases = client.CoordinationV1Api(api).list_namespaced_lease(
        "kube-system", label_selector=_LEASES, _request_timeout=API_TIMEOUT_S
    )
    return tuple(
        Server(each.metadata.labels[_HOST], each.metadata.creation_timestamp)
        for each in sorted(leases.items, key=lambda each: str(each.metadata.name))
        if _HOST in each.metadata.labels and (now - each.spec.renew_time).total_seconds() < _LIVES_S
    )


def shipped(found: Mapping[str, Newest], server: Server, now: datetime) -> tuple[bool, str]:
    """Whether a server's log is in the bucket as it should be, and what is said of it."""
    own, young = found.get(server.host), (now - server.since).total_seconds() < audit_log.STALE_S
    if own is None:
        return young, "audit log not shipped yet; it runs for a few minutes" if young else "audit log was never shipped"
    age_s = max((now - own.at).total_seconds(), 0)
    gaps = f"; {own.gaps} gap{'s' if own.gaps > 1 else ''}, where lines were lost" if own.gaps else ""
    return age_s < audit_log.STALE_S, f"audit log shipped {_ago(age_s)}{gaps}"


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
