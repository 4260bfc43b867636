"""NET-001 to NET-012: address ranges, and addresses within them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Network

from cluster.check.finding import Finding, Rule, Subject
from cluster.check.ranges import DOCKER, Range, free, overlapping, ranges, suggestion
from cluster.layout import API_SERVICE, DNS_SERVICE
from cluster.spec import Cloud

_LOST = {
    "network.pods": "packets to the addresses they share would go to pods",
    "network.services": "packets to the addresses they share would be taken for Services, whose addresses exist on no wire",
}
_RESERVED = (
    (IPv4Network("0.0.0.0/8"), '"this network" (RFC 1122); no host can have an address in it'),
    (IPv4Network("127.0.0.0/8"), "loopback; its packets never leave a host"),
    (IPv4Network("169.254.0.0/16"), "link-local; routers don't forward it, and clouds keep their metadata there"),
    (IPv4Network("224.0.0.0/4"), "multicast; no host has such an address"),
    (IPv4Network("240.0.0.0/4"), "reserved (RFC 1112); most systems refuse it"),
)
_RESERVED_BY = {Cloud.AZURE: (IPv4Network("168.63.129.16/32"), "Azure's own DNS, DHCP and health probes")}
"""Cloud -> a public range that no network in that cloud may use ("Azure Virtual Network FAQ")."""
# kube-apiserver refuses a service range of more than 20 bits.
_WIDEST_SERVICES = 12


def no_overlap(subject: Subject) -> Iterator[Finding]:
    """No two ranges overlap, in the cluster or among the clusters loaded with it."""
    own = ranges(subject)
    foreign = [other for checked in subject.others for other in ranges(checked)]
    everything = [*own, *foreign]
    networks = [one.network for one in everything]

    def may(low: int, high: int) -> bool:
        return low >= len(own) or (high >= len(own) and _may_be_shared(everything[low], everything[high]))

    room = cache(lambda prefix: suggestion(prefix, networks))
    for low, high in sorted(overlapping(networks, may)):
        one, other = everything[low], everything[high]
        shared = max(one.network, other.network, key=lambda network: network.prefixlen)
        whose = f" of cluster {other.cluster}" if high >= len(own) else ""
        lost = _LOST.get(one.name, "hosts couldn't tell which of the two networks a packet is for")
        yield Finding(
            one.where,
            f"{one} overlaps {other}{whose}",
            f"choose {one.name} outside {other.network}{room(one.network.prefixlen)}",
            (f"shared range: {shared} ({shared.num_addresses} addresses); {lost}",),
            also=() if whose else (other.where,),
        )


def _may_be_shared(one: Range, other: Range) -> bool:
    """Return whether two clusters may share a range.

    Service ranges are on no wire, a rack may have hosts of both, and people behind a VPN may reach both.
    """
    both_services = one.name == other.name == "network.services"
    same_rack = one.where[0] == "sites" and (one.where, one.network) == (other.where, other.network)
    people = one.name == other.name and one.name.endswith(".vpn.networks") and one.network == other.network
    return both_services or same_rack or people


def enough_pod_ranges(subject: Subject) -> Iterator[Finding]:
    """network.pods has a range of size node_prefix for each node."""
    network = subject.spec.network
    pods, prefix = network.pods, network.node_prefix
    also = (("network", "node_prefix"), *(("pools", pool, "hosts") for pool in subject.cluster.hosts))
    if prefix < pods.prefixlen:
        message = f"network.pods {pods} is smaller than the /{prefix} that node_prefix gives each node; no node would get pods"
        yield Finding(
            ("network", "pods"), message, f"use a /{max(1, prefix - 8)} for network.pods (256 nodes)", also=also
        )
        return
    hosts = sum(len(hosts) for hosts in subject.cluster.hosts.values())
    cloud = subject.spec.cloud_workers
    room, nodes = 2 ** (prefix - pods.prefixlen), hosts + cloud
    if nodes <= room:
        return
    fitting = prefix - (nodes - 1).bit_length()
    yield Finding(
        ("network", "pods"),
        f"network.pods {pods} with node_prefix {prefix} has room for {room} nodes, but pools can grow to {nodes}; "
        "further nodes would get no pods",
        f"use a /{fitting} for network.pods ({2 ** (prefix - fitting)} nodes)" if fitting >= 8 else "use smaller pools",
        (f"{hosts} hosts at sites, and up to {cloud} in the cloud",),
        also,
    )


def enough_pod_addresses(subject: Subject) -> Iterator[Finding]:
    """Three addresses of a node's range aren't for pods: the first, the last, and the bridge's."""
    prefix, max_pods = subject.spec.network.node_prefix, subject.spec.network.max_pods
    room = 2 ** (32 - prefix) - 3
    if max_pods > room:
        fitting = 32 - (max_pods + 2).bit_length()
        yield Finding(
            ("network", "node_prefix"),
            f"node_prefix {prefix} leaves {room} pod addresses on a node, but max_pods is {max_pods}; "
            "further pods would wait for an address",
            f"use node_prefix {fitting}, or max_pods {room}",
            also=(("network", "max_pods"),),
        )


def dns_address(subject: Subject) -> Iterator[Finding]:
    """The address of the DNS Service is in network.services, and isn't the first, which the API has."""
    network = subject.spec.network
    address, services = network.dns_ip, network.services
    where, also = ("network", "dns_ip"), (("network", "services"),)
    usual = services[DNS_SERVICE] if services.num_addresses > DNS_SERVICE + 1 else services[-1]
    hint = f"write {usual}, or leave dns_ip out"
    if address is None:
        return
    if address not in services:
        yield Finding(
            where, f"dns_ip {address} isn't in network.services {services}; no pod could reach DNS", hint, also=also
        )
    elif services.num_addresses > API_SERVICE and address == services[API_SERVICE]:
        yield Finding(where, f"dns_ip {address} is the first address of {services}, which the API has", hint, also=also)
    elif address in (services.network_address, services.broadcast_address):
        yield Finding(
            where, f"dns_ip {address} is the first or last of {services}; no Service can have it", hint, also=also
        )


def flannel_range(subject: Subject) -> Iterator[Finding]:
    """flannel's network must be the one that Kubernetes assigns pods from."""
    flannel, pods = subject.spec.network.flannel.network, subject.spec.network.pods
    if flannel is not None and flannel != pods:
        yield Finding(
            ("network", "flannel", "network"),
            f"flannel network {flannel} differs from network.pods {pods}; "
            "flannel wouldn't route the addresses that pods get",
            f"write {pods}, or leave it out",
            also=(("network", "pods"),),
        )


def reserved(subject: Subject) -> Iterator[Finding]:
    """No range overlaps a reserved one."""
    listed = ranges(subject)
    taken = [declared.network for declared in listed]
    cloud = subject.spec.control_plane.cloud
    specials = (*_RESERVED, *((_RESERVED_BY[cloud],) if cloud in _RESERVED_BY else ()))
    room = cache(lambda prefix: suggestion(prefix, taken))
    for declared in listed:
        hint = f"choose another range{room(declared.network.prefixlen)}"
        for special, why in specials:
            if declared.network.overlaps(special):
                relation = "is in" if declared.network.subnet_of(special) else "includes"
                yield Finding(declared.where, f"{declared} {relation} {special}, {why}", hint)
        if declared.network.overlaps(DOCKER):
            message = f"{declared} overlaps {DOCKER}, Docker's default bridge; a host that runs Docker would keep those packets"
            yield Finding(declared.where, message, hint, severity="warning")


def services_size(subject: Subject) -> Iterator[Finding]:
    """network.services has addresses for the API and DNS, and isn't wider than kube-apiserver allows."""
    network = subject.spec.network
    services = network.services
    if services.prefixlen < _WIDEST_SERVICES:
        message = f"network.services {services} is wider than /{_WIDEST_SERVICES}; kube-apiserver refuses to start"
        room = suggestion(16, [one.network for one in ranges(subject)])
        yield Finding(("network", "services"), message, f"use a /16{room}")
    last = API_SERVICE if network.dns_ip else DNS_SERVICE
    if services.num_addresses - 1 <= last:
        message = (
            f"network.services {services} has no address number {last} for {'the API' if network.dns_ip else 'DNS'}"
        )
        yield Finding(("network", "services"), message, "use a /16, or at least a /24", also=(("network", "dns_ip"),))


def private(subject: Subject) -> Iterator[Finding]:
    """Ranges are private: the cluster can't reach owners of the same addresses on the internet."""
    if subject.spec.network.allow_public_ranges:
        return
    listed = ranges(subject)
    taken = [declared.network for declared in listed]
    for declared in listed:
        special = any(declared.network.overlaps(block) for block, _ in _RESERVED)
        if declared.where[0] == "network" and declared.network.is_global and not special:
            room = free(declared.network.prefixlen, taken)
            taken += [room] if room else []
            hint = f"choose a private range{f', for example {room}' if room else ''}"
            yield Finding(
                declared.where,
                f"{declared} is public: the cluster couldn't reach hosts on the internet that have these addresses",
                f"{hint}; if it is yours, add network.allow_public_ranges: true",
            )


RULES: tuple[tuple[str, Rule], ...] = (
    ("NET-001", no_overlap),
    ("NET-004", enough_pod_ranges),
    ("NET-005", enough_pod_addresses),
    ("NET-006", dns_address),
    ("NET-007", flannel_range),
    ("NET-008", reserved),
    ("NET-012", private),
    ("NET-011", services_size),
)
