"""How many nodes, GPUs, pods and other things a cluster can have at most, from its spec, to plan metrics for.

What a spec does not say is assumed, on the high side. The assumptions are the constants of this file;
docs/explanation/metrics.md lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cluster import catalogue, hardware
from cluster.controllers import HOSTS
from cluster.hardware import Expected
from cluster.metrics.model import Per
from cluster.pools import Pool
from cluster.spec import Cluster

MOST_PODS = 150_000
"""Pods of a cluster that Kubernetes supports ("Considerations for large clusters")."""
CONTAINERS_OF_POD = 2
"""From the same page: 300,000 containers in 150,000 pods."""
CPUS = 256
"""Logical CPUs of a machine of unknown kind: as many as the largest of cluster/hardware/machines.yaml."""
DISKS = 10
"""Disks of a machine of unknown kind, without the one of the system: as many as a DGX has."""
FILESYSTEMS = 4
"""File systems of a node that are neither containers' nor in memory: /, /boot, /boot/efi, and one for data."""
INTERFACES = 4
"""Interfaces of a node besides `links` and rails: lo, the one with its address, flannel's, the bridge of its pods."""
DNS_PODS = 2
"""Of CoreDNS (`components.control_plane.dns`)."""
CONTROLLERS = 2
"""tenancy-sync and tenancy-capacity (`controllers.kinds`)."""


def most_nodes(cluster: Cluster) -> Mapping[str, int]:
    """Return pool -> the most nodes that it can have."""
    sizes = {
        name: len(cluster.hosts.get(name, ())) if pool.site else pool.max for name, pool in cluster.spec.pools.items()
    }
    return {name: size for name, size in sizes.items() if size}


def most_pods(cluster: Cluster) -> int:
    """Return the most pods: the spec's number, or as many as nodes and Kubernetes take."""
    possible = sum(most_nodes(cluster).values()) * cluster.spec.network.max_pods
    return min(possible, cluster.spec.monitoring.expected_pods or MOST_PODS)


def units(cluster: Cluster) -> Mapping[Per, int]:
    """Return how many there are at most of everything that a number of series grows with, except endpoints."""
    spec, pods = cluster.spec, most_pods(cluster)
    counted: Counter[Per] = Counter(
        {
            Per.CLUSTER: 1,
            Per.API_SERVER: spec.control_plane.api_servers,
            Per.MEMBER_OF_MAIN: spec.etcd.main.members,
            Per.MEMBER_OF_EVENTS: spec.etcd.events.members,
            Per.POD: pods,
            Per.CONTAINER: pods * CONTAINERS_OF_POD,
            Per.NAMESPACE: spec.monitoring.expected_namespaces,
            Per.POOL: len(spec.region_pools),
            Per.DNS: DNS_PODS,
            Per.CONTROLLER: CONTROLLERS * HOSTS if spec.tenancy else 0,
            Per.AUTOSCALER: 1 if spec.autoscaler else 0,
        }
    )
    for name, number in most_nodes(cluster).items():
        counted.update({per: each * number for per, each in of_node(cluster, name, spec.pools[name]).items()})
    counted.update(_ceph(cluster))
    return {per: counted[per] for per in Per if per is not Per.TARGET}


def of_node(cluster: Cluster, name: str, pool: Pool) -> Mapping[Per, int]:
    """Return how many things a node of a pool has."""
    machine = _machine(cluster, pool)
    gpus, rails = _gpus(cluster, pool), machine.rdma.ports if machine and machine.rdma else 0
    disks = sum(disk.count for disk in machine.disks) if machine and (machine.disks or pool.site is None) else DISKS
    links = len(cluster.spec.sites[pool.site].links.get(name, {})) if pool.site in cluster.spec.sites else 0
    return {
        Per.NODE: 1,
        Per.GPU_NODE: 1 if gpus else 0,
        Per.GPU: gpus,
        Per.CPU: (machine.cpus if machine else None) or CPUS,
        Per.DISK: disks + 1,
        Per.FILESYSTEM: FILESYSTEMS,
        Per.INTERFACE: INTERFACES + max(links, rails),
        Per.RDMA_PORT: rails,
    }


def _machine(cluster: Cluster, pool: Pool) -> Expected | None:
    """Return the hardware of a pool's machines, None if it is unknown: another rule reports kinds that do not exist."""
    try:
        return hardware.of_pool(cluster.spec.control_plane.cloud, pool)
    except KeyError:
        return None


def _gpus(cluster: Cluster, pool: Pool) -> int:
    """Return the GPUs of a pool's machines, 0 if nothing says what they are."""
    cloud, machine = cluster.spec.control_plane.cloud, _machine(cluster, pool)
    if machine and machine.gpus:
        return machine.gpus.count
    types = catalogue.of(cloud).machine_types if cloud in catalogue.CLOUDS else {}
    entry = types.get(pool.machine or "")
    return entry.type.gpus if entry and entry.type else 0


def _ceph(cluster: Cluster) -> Mapping[Per, int]:
    """Return the sites with Ceph, and its disks."""
    sites = [site.ceph for site in cluster.spec.sites.values() if site.ceph]
    disks = sum(
        sum(kind.count for kind in ceph.disks.values()) * sum(len(cluster.hosts.get(pool, ())) for pool in ceph.hosts)
        for ceph in sites
    )
    return {Per.SITE_WITH_CEPH: len(sites), Per.CEPH_DISK: disks}
