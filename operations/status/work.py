"""Who works on the cluster, whether its spec is built, and how old its backups are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509
from kubernetes import client

from clients.access import Access
from cluster.shared import NewerDataError
from cluster.spec import Cluster
from operations.audit_logs import BucketSilentError, newest, servers, shipped
from operations.backups import read_states
from operations.record import RecordStoreError, read_ledger
from operations.record.model import ago
from operations.status.model import Item
from stacks.certificates import BACKDATE


def operation(cluster: Cluster, access: Access) -> Iterator[Item]:
    """Who holds the cluster."""
    try:
        found = read_ledger(cluster.name, access, 0)
    except NewerDataError as error:
        yield Item("operation", "record", False, str(error))
        return
    except RecordStoreError as error:
        help_ = 'see docs/how-to/operations.md, "The bucket does not answer"'
        yield Item("operation", "record", False, str(error), help_)
        return
    now = found.current
    if now is None:
        yield Item("operation", "record", True, "nobody works on it")
        return
    told = f"{now.held_by}, last heard of {ago(found.silent_s)}"
    done = ", ".join(step.name for step in now.steps)
    told += f"; done: {done}" if done else ""
    if found.lives or now.repeatable:
        yield Item("operation", "record", True, f"{'held' if found.lives else 'cut short'}: {told}")
    else:
        yield Item("operation", "record", False, f"cut short: {told}", now.command)


def spec(cluster: Cluster, access: Access) -> Iterator[Item]:
    """Whether the spec is the one that was built. What somebody changed in the cloud or on hosts shows in a preview alone."""
    if access.outputs.spec_sha256 == cluster.digest:
        yield Item("spec", "spec", True, "the one that was built")
    else:
        yield Item("spec", "spec", True, f"changed since it was built: ./menagerie up {cluster.name} --dry-run")


def audit_logs(cluster: Cluster, access: Access, api: client.ApiClient, at: datetime | None = None) -> Iterator[Item]:
    """Of each API server that runs, how long ago its audit log was shipped."""
    now = at or datetime.now(UTC)
    help_ = 'see docs/explanation/audit-logs.md, "When it goes wrong"'
    try:
        found = newest(access, cluster.name)
    except BucketSilentError as error:
        yield Item("audit logs", "bucket", False, str(error), help_)
        return
    for server in servers(api, now):
        ok, told = shipped(found, server, now)
        yield Item("audit logs", server.host, ok, told, "" if ok else help_)


def backups(cluster: Cluster, access: Access, at: datetime | None = None) -> Iterator[Item]:
    """Of each etcd with backups, whether a drill found one good that is young enough; a young cluster has time for its first."""
    now = at or datetime.now(UTC)
    authorities = x509.load_pem_x509_certificates(access.outputs.ca_pem.encode())
    age_s = (now - min(each.not_valid_before_utc for each in authorities) - BACKDATE).total_seconds()
    for state in read_states(cluster, access, now=now.timestamp()):
        early = state.verified_s is None and age_s < state.allowed_s
        told = f"{state.told}; the cluster was made {ago(age_s)}" if early else state.told
        ok = state.ok or early
        yield Item(
            "backups", f"etcd {state.etcd}", ok, told, "" if ok else f"./menagerie status {cluster.name} backups"
        )
