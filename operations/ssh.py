"""Programs on the machines of a cluster's sites, one connection a machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clients.access import Access
from clients.remote.executor import Ssh
from cluster.spec import Cluster
from inventories.build import known_hosts
from operations.stack import access_to


@contextmanager
def ssh_to(cluster: Cluster, access: Access | None = None) -> Iterator[Ssh]:
    """By the operator's own ssh and its known hosts. A lab has made its machines, so its stack alone has their keys.

    access: of a stack that has been opened already. NotBuiltError for a lab that has not been built.
    """
    if access is None and cluster.is_lab:
        access = access_to(cluster)
    if access is None:
        with Ssh(cluster) as executor:
            yield executor
        return
    known = known_hosts(cluster, access.outputs.ssh.known_hosts)
    with access.ssh_key_file() as key, Ssh(cluster, known, key) as executor:
        yield executor
