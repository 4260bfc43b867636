"""Programs on the machines of a cluster's sites, one connection a machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cluster.spec import Cluster
from inventories.build import known_hosts
from operations.stack import access_to
from remote.executor import Ssh


@contextmanager
def ssh_to(cluster: Cluster) -> Iterator[Ssh]:
    """By the operator's own ssh and its known hosts. A lab has made its machines, so its stack alone has their keys.

    NotBuiltError for a lab that has not been built.
    """
    if not cluster.is_lab:
        with Ssh(cluster) as executor:
            yield executor
        return
    access = access_to(cluster)
    known = known_hosts(cluster, access.outputs.ssh.known_hosts)
    with access.ssh_key_file() as key, Ssh(cluster, known, key) as executor:
        yield executor
