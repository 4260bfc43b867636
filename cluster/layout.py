"""Who has which place in the zones, in the lab's `network.nodes`, and in `network.services`.

The clouds' is in `cluster.subnets`. The lab's layout depends on the length of the range alone, never on how many hosts
there are: adding an API server or a member moves nobody. The range is cut into sections of `section_size` addresses:

    /24: .1 gateway, .10 load balancer, .11-.20 API servers, .21-.30 etcd main, .31-.40 etcd events
    /16: .0.1 gateway, .0.100 load balancer, then 100 addresses each

What follows the sections is never handed out, but that workers in a lab's region have the upper half of the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

from cluster.document import Where
from cluster.spec import ClusterSpec, EtcdHosts

API_SERVICE = 1
"""Number in network.services of the API as pods see it: kube-apiserver takes the first."""
DNS_SERVICE = 10
"""Number in network.services of the DNS service, by custom of kubeadm."""

ETCD_ZONES = 3
"""A fourth zone would survive no more losses of members, and adding it would move some."""

_SMALLEST_SECTION = 10
LARGEST_SECTION = 100

KINDS = ("api", "etcd-main", "etcd-events")
"""Kinds of cloud-side hosts in the order of their sections; a host is called <kind>-<number>."""


OF_THE_API = frozenset({"api", "kubernetes", "localhost"})
"""Names of the API, whole ones or the first part in the cluster's zone."""


@dataclass(frozen=True)
class Section:
    """The addresses kept for one kind of host.

    where: the place of their number in the spec. first: index in network.nodes of the first address.
    """

    where: Where
    count: int
    first: int


def section_size(nodes: IPv4Network) -> int:
    """Addresses kept for each kind of host: 10 in a /24 or smaller, growing with the range to 100."""
    return min(LARGEST_SECTION, max(_SMALLEST_SECTION, _SMALLEST_SECTION * nodes.num_addresses // 256))


def member_zones(spec: ClusterSpec) -> tuple[str, ...]:
    """The zones that members of etcds stand in, who fill them in turn."""
    return tuple(str(zone) for zone in spec.control_plane.zones[:ETCD_ZONES])


def counts(spec: ClusterSpec) -> dict[str, tuple[Where, int]]:
    """Kind -> the place of its number in the spec, and the number; no etcd-events on the hosts of main."""
    etcd = spec.etcd
    wanted: dict[str, tuple[Where, int]] = {
        "api": (("control_plane", "api_servers"), spec.control_plane.api_servers),
        "etcd-main": (("etcd", "main", "members"), etcd.main.members),
        "etcd-events": (("etcd", "events", "members"), etcd.events.members),
    }
    if etcd.events.hosts is EtcdHosts.MAIN:
        del wanted["etcd-events"]
    return wanted


def sections(spec: ClusterSpec) -> dict[str, Section]:
    """Kind -> its section; no etcd-events where events runs on the hosts of main."""
    size = section_size(spec.network.nodes)
    return {
        kind: Section(where, count, (KINDS.index(kind) + 1) * size + 1) for kind, (where, count) in counts(spec).items()
    }
