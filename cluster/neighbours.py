"""How many neighbours (ARP and NDP entries) a host can have at one time.

Linux keeps at most gc_thresh3 neighbours, 1024 by default, for all its network namespaces together;
beyond that, new connections fail with "neighbour: arp_cache: neighbor table overflow!". OpenAI met
it at 1,000 nodes and set 80000, 90000, 100000.

Entries that flannel makes for VXLAN are permanent, and those do not count since Linux 5.0. What
counts is the largest network whose hosts speak to each other directly, and the pods on the host.
"""

from __future__ import annotations

from collections import Counter

from cluster.spec import Cluster

CAP = 100_000
"""gc_thresh3 of OpenAI's cluster, the most that Azure allows. Above it nothing is known to work."""
GATEWAYS = 2
"""A pair of routers, as racks commonly have."""


def largest_network(cluster: Cluster) -> tuple[str, int]:
    """(layer-2 network with the most hosts, their number); the cloud's pools count at their largest."""
    spec = cluster.spec
    load_balancer = 1
    cloud = spec.control_plane.api_servers + spec.etcd.main.members + spec.etcd.events.members + load_balancer
    sizes = Counter({"network.nodes": cloud + spec.cloud_workers})
    sizes.update(f"rack {spec.pools[pool].site}/{host.rack}" for pool, host in cluster.host_list())
    return sizes.most_common(1)[0]


def needed(cluster: Cluster) -> int:
    """The most neighbours that a host of this cluster can have at one time."""
    return largest_network(cluster)[1] + cluster.spec.network.max_pods + GATEWAYS
