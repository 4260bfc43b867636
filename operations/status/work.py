"""Status of the current operation, the spec, audit logs and backups."""

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
from operations.status.model import StatusItem
from stacks.certificates import BACKDATE


def operation(cluster: Cluster, access: Access) -> Iterator[StatusItem]:
    """Yield which operation holds the cluster."""
    try:
        ledger = read_ledger(cluster.name, access, 0)
    except NewerDataError as error:
        yield StatusItem("operation", "record", False, str(error))
        return
    except RecordStoreError as error:
        help_ = 'see docs/how-to/operations.md, "The bucket does not answer"'
        yield StatusItem("operation", "record", False, str(error), help_)
        return
    current = ledger.current
    if current is None:
        yield StatusItem("operation", "record", True, "no operation in progress")
        return
    detail = f"{current.held_by}, last heard of {ago(ledger.silent_s)}"
    done = ", ".join(step.name for step in current.steps)
    detail += f"; done: {done}" if done else ""
    if ledger.lives or current.repeatable:
        yield StatusItem("operation", "record", True, f"{'held' if ledger.lives else 'interrupted'}: {detail}")
    else:
        yield StatusItem("operation", "record", False, f"interrupted: {detail}", current.command)


def spec(cluster: Cluster, access: Access) -> Iterator[StatusItem]:
    """Yield whether the spec is the one that was built. Drift in the cloud or on hosts is visible only in a preview."""
    if access.outputs.spec_sha256 == cluster.digest:
        yield StatusItem("spec", "spec", True, "unchanged since it was built")
    else:
        yield StatusItem(
            "spec", "spec", True, f"changed since it was built; to compare: ./menagerie up {cluster.name} --dry-run"
        )


def audit_logs(
    cluster: Cluster, access: Access, api: client.ApiClient, at: datetime | None = None
) -> Iterator[StatusItem]:
    """Yield how long ago the audit log of each running API server was shipped."""
    now = at or datetime.now(UTC)
    help_ = 'see docs/explanation/audit-logs.md, "When it goes wrong"'
    try:
        newest_by_host = newest(access, cluster.name)
    except BucketSilentError as error:
        yield StatusItem("audit logs", "bucket", False, str(error), help_)
        return
    for server in servers(api, now):
        ok, detail = shipped(newest_by_host, server, now)
        yield StatusItem("audit logs", server.host, ok, detail, "" if ok else help_)


def backups(cluster: Cluster, access: Access, at: datetime | None = None) -> Iterator[StatusItem]:
    """Yield whether each etcd has a recent backup that passed a drill. A new cluster has some time for its first one."""
    now = at or datetime.now(UTC)
    authorities = x509.load_pem_x509_certificates(access.outputs.ca_pem.encode())
    age_s = (now - min(authority.not_valid_before_utc for authority in authorities) - BACKDATE).total_seconds()
    for state in read_states(cluster, access, now=now.timestamp()):
        is_early = state.verified_s is None and age_s < state.allowed_s
        detail = f"{state.summary}; the cluster was created {ago(age_s)}" if is_early else state.summary
        ok = state.ok or is_early
        yield StatusItem(
            "backups", f"etcd {state.etcd}", ok, detail, "" if ok else f"./menagerie status {cluster.name} backups"
        )
