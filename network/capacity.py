"""How much fits: nodes in the range of pods, pods on a node, and what the spec may grow to."""

from __future__ import annotations

from cluster.spec import Cluster


def node_capacity(cluster: Cluster) -> int:
    """Nodes that the range of pods has room for: one range of `node_prefix` each."""
    network = cluster.spec.network
    spare_bits = network.node_prefix - network.pods.prefixlen
    return 1 << spare_bits if spare_bits >= 0 else 0


def pod_addresses(node_prefix: int) -> int:
    """Pods that a node's range has addresses for: all but the network's, the broadcast's and the
    bridge's own."""
    return (1 << (32 - node_prefix)) - 3


def declared_nodes(cluster: Cluster) -> int:
    """The most nodes that the spec can lead to: machines at sites, and the maximum of each pool in
    the cloud."""
    return len(cluster.host_list()) + cloud_workers(cluster)


def cloud_workers(cluster: Cluster) -> int:
    """The most workers that pools in the cloud can grow to."""
    return sum(pool.max for pool in cluster.spec.pools.values() if pool.site is None)
