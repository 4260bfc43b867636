"""Where the journal of installations is, and the SSH keys in it: every checkout of a cluster sees the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clients.access import STATE, Access
from cluster.spec import Cluster
from operations.machines_lock import alone
from operations.provisioning.journal import InstallJournal, InstallStage
from operations.provisioning.machines import every
from operations.record.store import RecordStore, RecordStoreError, bucket_store


def shared(access: Access | None) -> RecordStore | None:
    """Return where all checkouts of a cluster keep the journal; None before the first `up`."""
    return bucket_store(access) if access else None


def journal_of(cluster: str, store: RecordStore | None) -> InstallJournal:
    """Return the journal: this checkout's file, and what other checkouts wrote to the store."""
    return InstallJournal(STATE / cluster / "machines.jsonl", store)


@contextmanager
def locked_journal(cluster: str, store: RecordStore | None) -> Iterator[InstallJournal]:
    """Lock the machines for this checkout, and yield the journal. Share it before and after the block.

    Errors: raises StackLockedError while another run installs machines, RecordStoreError if the store does not answer.
    """
    with alone(STATE / cluster, "machines", "installed"):
        journal = journal_of(cluster, store)
        journal.share()
        yield journal
        journal.share()


def host_keys(cluster: Cluster, access: Access | None) -> dict[str, str]:
    """Return machine -> the SSH key that it reported when it was installed, from whichever checkout.

    Empty if the bucket does not answer: ssh then refuses machines that are not among the operator's own known hosts.
    """
    machines = tuple(every(cluster))
    if access is None or not machines:
        return {}
    try:
        journal = journal_of(cluster.name, shared(access))
    except RecordStoreError:
        return {}
    records = map(journal.of, machines)
    return {record.name: record.key for record in records if record.key and record.stage is not InstallStage.INSTALLING}
