"""How many neighbours (ARP and NDP entries) a host can have at the same time.

Linux keeps at most gc_thresh3 neighbours, 1024 by default, for all network namespaces together. Above that,
new connections fail with "neighbour: arp_cache: neighbor table overflow!". OpenAI hit this limit at 1,000
nodes and set 80000, 90000, 100000.

flannel's entries for VXLAN are permanent, which don't count since Linux 5.0. The hosts of the largest network
that communicate directly count, and the pods on the host.
"""

from __future__ import annotations

from collections import Counter

from cluster.spec import Cluster

CAP = 100_000
"""gc_thresh3 of OpenAI's cluster, and the most that Azure allows. No larger value is known to work."""
GATEWAYS = 2
"""A pair of routers, as is common in racks."""


def largest_network(cluster: Cluster) -> tuple[str, int]:
    """Return (layer-2 network with the most hosts, their number). Pools in the cloud count at maximum size."""
    spec = cluster.spec
    load_balancer = 1
    cloud = spec.control_plane.api_servers + spec.etcd.main.members + spec.etcd.events.members + load_balancer
    sizes = Counter({"network.nodes": cloud + spec.cloud_workers})
    sizes.update(f"rack {spec.pools[pool].site}/{host.rack}" for pool, host in cluster.host_list())
    return sizes.most_common(1)[0]


def needed(cluster: Cluster) -> int:
    """Return the most neighbours that a host of this cluster can have at the same time."""
    return largest_network(cluster)[1] + cluster.spec.network.max_pods + GATEWAYS
