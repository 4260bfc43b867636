"""Workers in a lab's region, and the ports that its router opens between them, machines at sites and hosts in the cloud. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cluster.spec import Cluster
from cluster.subnets import worker_ranges
from components.flows.flow import Role, spans
from components.flows.table import flows
from network.addresses import AddressPlan, HostAddress

# Skips the network's own address and the router's.
_FIRST = 2


class Worker(NamedTuple):
    pool: str
    host: HostAddress


def workers_in_region(cluster: Cluster) -> tuple[Worker, ...]:
    """Return the minimum number of workers of each pool; the autoscaler adds more (`operations.lab`). Named as in a cloud."""
    pools = cluster.spec.pools
    return tuple(worker for worker, number in _numbered(cluster) if number <= pools[worker.pool].min)


def possible_in_region(cluster: Cluster) -> tuple[Worker, ...]:
    """Return as many workers of each pool as it can grow to."""
    return tuple(worker for worker, _ in _numbered(cluster))


def _numbered(cluster: Cluster) -> list[tuple[Worker, int]]:
    """Return each worker with its number in its pool. Addresses depend on the maximum of each pool, so growing moves none."""
    numbered = [(name, number) for name, pool in cluster.spec.region_pools.items() for number in range(1, pool.max + 1)]
    if not numbered:
        return []
    (network,), zones = worker_ranges(cluster.spec), cluster.spec.control_plane.zones
    return [
        (Worker(pool, HostAddress(f"{cluster.name}-{pool}-{number}", str(zones[index % len(zones)]), address)), number)
        for index, ((pool, number), address) in enumerate(zip(numbered, list(network)[_FIRST:], strict=False))
    ]


def openings(cluster: Cluster, plan: AddressPlan) -> dict[str, tuple[str, ...]]:
    """Return fields of `sandbox.lab.plan.LabSpec`: what the router opens, from the table of flows."""
    return {
        "between_workers": _between_workers(cluster),
        "racks_to_cloud": _to_cloud(cluster, plan, Role.WORKER_AT_SITE),
        "workers_to_cloud": _to_cloud(cluster, plan, Role.WORKER_IN_REGION),
    }


def _between_workers(cluster: Cluster) -> tuple[str, ...]:
    """Return connections between workers in the region and at sites. Both sides may open the same ports."""
    ends = {Role.WORKER_IN_REGION, Role.WORKER_AT_SITE}
    matches = {
        f"{flow.protocol} dport {span}"
        for flow in flows(cluster)
        if {flow.source, flow.destination} == ends
        for span in spans(flow.ports)
    }
    return tuple(sorted(matches))


def _to_cloud(cluster: Cluster, plan: AddressPlan, source: Role) -> tuple[str, ...]:
    """Return connections of workers to hosts in the cloud other than the load balancer."""
    hosts = {
        Role.API_SERVER: plan.api_servers,
        Role.ETCD_MAIN: plan.etcd["main"],
        Role.ETCD_EVENTS: plan.etcd["events"],
    }
    return tuple(
        f"ip daddr {{ {', '.join(str(host.address) for host in hosts[flow.destination])} }} {flow.protocol} dport {span}"
        for flow in flows(cluster)
        if flow.source is source and flow.destination in hosts
        for span in spans(flow.ports)
    )
