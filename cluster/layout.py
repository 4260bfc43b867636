"""Which host has which zone, address in the lab's `network.nodes`, and which Service which address in `network.services`.

The layout in clouds is in `cluster.subnets`. The lab's layout depends only on the size of the range, not on the number of
hosts: adding an API server or a member moves none. The range is cut into sections of `section_size` addresses:

    /24: .1 gateway, .10 load balancer, .11-.20 API servers, .21-.30 etcd main, .31-.40 etcd events
    /16: .0.1 gateway, .0.100 load balancer, then 100 addresses each

Addresses after the sections aren't used, except that workers in a lab's region have the upper half of the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

from cluster.document import Where
from cluster.spec import ClusterSpec, EtcdHosts

API_SERVICE = 1
"""Index in network.services of the API's address for pods: kube-apiserver takes the first."""
DNS_SERVICE = 10
"""Index in network.services of the DNS Service, as in kubeadm."""

ETCD_ZONES = 3
"""Zones that members use. A fourth would not survive more losses, and adding it would move members."""

_SMALLEST_SECTION = 10
LARGEST_SECTION = 100

KINDS = ("api", "etcd-main", "etcd-events")
"""Kinds of hosts in the region, in the order of their sections. A host is called <kind>-<number>."""


OF_THE_API = frozenset({"api", "kubernetes", "localhost"})
"""Names of the API: full names, or the first label in the cluster's zone."""


@dataclass(frozen=True)
class Section:
    """The addresses reserved for one kind of host.

    where: where the spec has their number. first: index in network.nodes of the first address.
    """

    where: Where
    count: int
    first: int


def section_size(nodes: IPv4Network) -> int:
    """Return the number of addresses for each kind of host: 10 in a /24 or smaller, growing with the range to 100."""
    return min(LARGEST_SECTION, max(_SMALLEST_SECTION, _SMALLEST_SECTION * nodes.num_addresses // 256))


def member_zones(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the zones of etcd members, which fill them in turn."""
    return tuple(str(zone) for zone in spec.control_plane.zones[:ETCD_ZONES])


def counts(spec: ClusterSpec) -> dict[str, tuple[Where, int]]:
    """Map each kind to (where the spec has its number, the number). Without etcd-events if it runs on main's hosts."""
    etcd = spec.etcd
    kinds: dict[str, tuple[Where, int]] = {
        "api": (("control_plane", "api_servers"), spec.control_plane.api_servers),
        "etcd-main": (("etcd", "main", "members"), etcd.main.members),
        "etcd-events": (("etcd", "events", "members"), etcd.events.members),
    }
    if etcd.events.hosts is EtcdHosts.MAIN:
        del kinds["etcd-events"]
    return kinds


def sections(spec: ClusterSpec) -> dict[str, Section]:
    """Map each kind to its section. Without etcd-events if it runs on main's hosts."""
    size = section_size(spec.network.nodes)
    return {
        kind: Section(where, count, (KINDS.index(kind) + 1) * size + 1) for kind, (where, count) in counts(spec).items()
    }
