"""Who has which place in `network.nodes`, the range of the cloud side, and in `network.services`.

The layout depends on the length of the range alone, never on how many hosts there are: adding an
API server or a member moves nobody. The range is cut into sections of `section_size` addresses:

    /24: .1 gateway, .10 endpoint, .11-.20 API servers, .21-.30 etcd main, .31-.40 etcd events
    /16: .0.1 gateway, .0.100 endpoint, then 100 addresses each

What follows the sections is free for cloud workers and is never handed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, summarize_address_range

from cluster.document import Where
from cluster.spec import ClusterSpec, EtcdHosts

API_SERVICE = 1
"""Number in network.services of the API as pods see it: kube-apiserver takes the first."""
DNS_SERVICE = 10
"""Number in network.services of the DNS service, by custom of kubeadm."""

# Azure and AWS keep the first four addresses of a subnet and the last one, Google Cloud the first
# and the last two; every section starts well after them.
_SMALLEST_SECTION = 10
LARGEST_SECTION = 100

KINDS = ("api", "etcd-main", "etcd-events")
"""Kinds of cloud-side hosts in the order of their sections; a host is called <kind>-<number>."""


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


def free(nodes: IPv4Network) -> tuple[IPv4Network, ...]:
    """What follows the sections of the control plane, as ranges."""
    first = nodes[(len(KINDS) + 1) * section_size(nodes) + 1]
    return tuple(summarize_address_range(first, nodes[-1]))


def sections(spec: ClusterSpec) -> dict[str, Section]:
    """Kind -> its section; no etcd-events where events runs on the hosts of main."""
    size, etcd = section_size(spec.network.nodes), spec.etcd
    wanted: tuple[tuple[Where, int], ...] = (
        (("control_plane", "api_servers"), spec.control_plane.api_servers),
        (("etcd", "main", "members"), etcd.main.members),
        (("etcd", "events", "members"), etcd.events.members),
    )
    made = {
        kind: Section(where, count, number * size + 1)
        for number, (kind, (where, count)) in enumerate(zip(KINDS, wanted, strict=True), start=1)
    }
    if etcd.events.hosts is EtcdHosts.MAIN:
        del made["etcd-events"]
    return made
