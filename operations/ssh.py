"""Runs programs on the machines at a cluster's sites, with one connection per machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clients.access import Access
from clients.remote.executor import Ssh
from cluster.spec import Cluster
from inventories.build import known_hosts
from operations.machines_journal import host_keys
from operations.provisioning.machines import every
from operations.stack import access_if_built, access_to


@contextmanager
def ssh_to(cluster: Cluster, access: Access | None = None) -> Iterator[Ssh]:
    """Yield an executor over the operator's ssh and known hosts, and the keys that installed machines reported.

    For a lab, use the stack's keys alone: it created the machines. access: of a stack that is open already. Raises
    NotBuiltError for a lab that has not been built.
    """
    if access is None and cluster.is_lab:
        access = access_to(cluster)
    elif access is None and any(every(cluster)):
        access = access_if_built(cluster)
    if access is None:
        with Ssh(cluster) as executor:
            yield executor
        return
    keys = {**host_keys(cluster, access), **access.outputs.ssh.known_hosts}
    with access.ssh_key_file() as key, Ssh(cluster, known_hosts(cluster, keys), key) as executor:
        yield executor
