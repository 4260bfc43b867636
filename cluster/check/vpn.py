"""VPN-001 to VPN-008: how sites are joined to the region. The model itself reports VPN-004."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address

from cluster.check.finding import Checked, Finding, Rule, Subject
from cluster.check.ranges import DOCUMENTATION
from cluster.document import Where, show
from cluster.sites import EdgeRouter, Vpn
from cluster.spec import Profile
from cluster.vpn import ENDS, TUNNEL_PREFIX, gateway, prefix_for

# RFC 6996.
_PRIVATE_ASNS = range(64512, 65535)


def _joined(checked: Checked) -> Iterator[tuple[str, Vpn]]:
    return ((name, site.vpn) for name, site in checked.spec.sites.items() if site.vpn)


def _routers(checked: Checked) -> Iterator[tuple[Where, Vpn, EdgeRouter]]:
    """Yield (place of its address, its vpn, router) of every edge router."""
    for site, vpn in _joined(checked):
        for name, router in vpn.routers.items():
            yield ("sites", site, "vpn", "routers", name, "address"), vpn, router


def peers(subject: Subject) -> Iterator[Finding]:
    """An edge router is listed once, has the same ASN in all clusters, and has networks behind it."""
    foreign = {
        router.address: (vpn.asn, other.named((*where[:3], "asn")))
        for other in subject.others
        for where, vpn, router in _routers(other)
    }
    places: dict[IPv4Address, Where] = {}
    for where, vpn, router in _routers(subject):
        asn, cluster = foreign.get(router.address, (vpn.asn, ""))
        if router.address in places:
            before = places[router.address]
            message = f"{router.address} is the address of both {show(before[:-1])} and {show(where[:-1])}"
            yield Finding(where, message, "correct one of the two, or remove it", also=(before,))
        elif asn != vpn.asn:
            message = f"{router.address} has ASN {vpn.asn} here and {asn} in cluster {cluster}; a router has only one"
            yield Finding(where, message, f"write the same asn in both: {asn}", also=((*where[:3], "asn"),))
        places.setdefault(router.address, where)
    for site, vpn in _joined(subject):
        if not subject.spec.sites[site].racks and not vpn.networks:
            message = f"sites.{site}.vpn leads to no rack, so the gateway would learn no route"
            hint = f"add racks to {site} or networks to its vpn, or remove the vpn"
            yield Finding(("sites", site, "vpn"), message, hint)


def single_router(subject: Subject) -> Iterator[Finding]:
    """In production a site has two routers: OpenAI lost a whole group of workers with a single tunnel."""
    if subject.spec.profile is Profile.DEVELOPMENT:
        return
    for site, vpn in _joined(subject):
        if len(vpn.routers) == 1 and not vpn.allow_single_router:
            where = ("sites", site, "vpn", "routers")
            message = (
                f"site {site} has only one edge router, {next(iter(vpn.routers))}; "
                "while it is down, the site's workers can't reach the control plane"
            )
            hint = "add a second router, or set allow_single_router: true"
            yield Finding(where, message, hint, also=((*where[:-1], "allow_single_router"),))


def way_to_the_region(subject: Subject) -> Iterator[Finding]:
    """Every site with workers has a way to the load balancer in network.nodes; workers open all connections."""
    spec, joined = subject.spec, dict(_joined(subject))
    if not joined:
        return
    workers = Counter(spec.pools[pool].site for pool, _ in subject.cluster.host_list())
    for site in spec.sites:
        if site not in joined and workers[site]:
            message = (
                f"site {site} has {workers[site]} workers but no vpn, which {next(iter(joined))} has; "
                f"without a route to network.nodes {spec.network.nodes} they can't join"
            )
            hint = "add a vpn, or ignore this warning if the site has its own line to the region"
            yield Finding(("sites", site), message, hint, severity="warning")


def asns(subject: Subject) -> Iterator[Finding]:
    """ASNs differ: BGP treats a route with its own ASN in the path as a loop."""
    ours = gateway(subject.spec)
    taken = ours.asns | {ours.asn} | {vpn.asn for _, vpn in _joined(subject)}
    free = next((asn for asn in _PRIVATE_ASNS if asn not in taken), 4_200_000_000)
    hint = f"choose a private one (RFC 6996), for example {free}"
    site_of: dict[int, str] = {}
    for site, vpn in _joined(subject):
        where: Where = ("sites", site, "vpn", "asn")
        if vpn.asn == ours.asn:
            message = f"ASN {vpn.asn} is that of the cloud's gateway, which would drop routes from {site}"
            yield Finding(where, message, hint)
        elif vpn.asn in ours.asns:
            message = f"ASN {vpn.asn} is reserved by IANA or by {subject.spec.control_plane.cloud}; no site can use it"
            yield Finding(where, message, hint)
        elif vpn.asn in site_of:
            message = (
                f"ASN {vpn.asn} is used by {site_of[vpn.asn]} and {site}; BGP would treat routes between them as loops"
            )
            yield Finding(where, message, hint, also=(("sites", site_of[vpn.asn], "vpn", "asn"),))
        site_of.setdefault(vpn.asn, site)


def inside(subject: Subject) -> Iterator[Finding]:
    """Ranges inside tunnels are large enough, and ones that the gateway accepts."""
    for site, vpn in _joined(subject):
        if problem := _inside_problem(subject, vpn):
            where: Where = ("sites", site, "vpn")
            yield Finding(
                (*where, "inside"), f"inside {vpn.inside} {problem}", _free(subject, vpn), also=((*where, "routers"),)
            )


def _inside_problem(subject: Subject, vpn: Vpn) -> str:
    ours, cloud = gateway(subject.spec), subject.spec.control_plane.cloud
    if vpn.inside.prefixlen > prefix_for(vpn):
        return f"has no room for {ENDS * len(vpn.routers)} tunnels with a /{TUNNEL_PREFIX} each"
    if not any(vpn.inside.subnet_of(block) for block in ours.inside):
        return f"isn't in {' or '.join(map(str, ours.inside))}, the ranges for tunnels of {cloud}'s gateways"
    kept = next((network for network in ours.kept if network.overlaps(vpn.inside)), None)
    return f"overlaps {kept}, which {cloud} reserves" if kept else ""


def inside_addresses_differ(subject: Subject) -> Iterator[Finding]:
    """Tunnels of a gateway or of a router don't share addresses inside."""
    joined = list(_joined(subject))
    for number, (site, vpn) in enumerate(joined):
        where: Where = ("sites", site, "vpn", "inside")
        for name, other in joined[:number]:
            if vpn.inside.overlaps(other.inside):
                message = (
                    f"inside {vpn.inside} overlaps {other.inside} of {name}; two tunnels would have the same address"
                )
                yield Finding(where, message, _free(subject, vpn), also=(("sites", name, "vpn", "inside"),))
        for cluster, other in _at_the_same_router(subject, vpn):
            if vpn.inside.overlaps(other.inside):
                message = f"inside {vpn.inside} overlaps {other.inside} of cluster {cluster}, at the same router"
                yield Finding(where, message, _free(subject, vpn))


def _at_the_same_router(subject: Subject, vpn: Vpn) -> Iterator[tuple[str, Vpn]]:
    """Yield (cluster with position, its vpn) of other clusters that share a router with this site."""
    own = {router.address for router in vpn.routers.values()}
    for other in subject.others:
        for site, theirs in _joined(other):
            if any(router.address in own for router in theirs.routers.values()):
                yield other.named(("sites", site, "vpn", "inside")), theirs


def _free(subject: Subject, vpn: Vpn) -> str:
    taken = [other.inside for _, other in _joined(subject) if other is not vpn]
    taken += [theirs.inside for _, theirs in _at_the_same_router(subject, vpn)]
    prefix = prefix_for(vpn)
    network = gateway(subject.spec).free(prefix, taken)
    return (
        f"choose a /{prefix}, for example {network}" if network else "remove sites; the gateway has no free range left"
    )


def public(subject: Subject) -> Iterator[Finding]:
    """Routers have public addresses: the gateway reaches them over the internet. A lab has no gateway."""
    if subject.cluster.is_lab:
        return
    for where, _, router in _routers(subject):
        passes = router.address.is_global and not router.address.is_multicast
        if not passes and not any(router.address in block for block in DOCUMENTATION):
            message = f"edge router {where[-2]} has the address {router.address}, which isn't public, so no gateway can reach it"
            yield Finding(
                where, message, "write the address that the router, or the NAT in front of it, has on the internet"
            )


def machines(subject: Subject) -> Iterator[Finding]:
    """A router that Menagerie configures has its own machine, with the same address in all clusters."""
    workers = {host.address: host.name for _, host in subject.cluster.host_list()}
    foreign = {
        router.address: (router.host, other.named(where))
        for other in subject.others
        for where, _, router in _routers(other)
    }
    routers: dict[IPv4Address, tuple[IPv4Address, Where]] = {}
    for address, _, router in _routers(subject):
        where: Where = (*address[:-1], "host") if router.host else address
        elsewhere, cluster = foreign.get(router.address, (router.host, ""))
        if elsewhere != router.host:
            here, there = (str(host) if host else "no host" for host in (router.host, elsewhere))
            message = f"router {router.address} is {here} here and {there} in cluster {cluster}"
            yield Finding(where, message, "write the same host in both, or in neither")
        if router.host is None:
            continue
        if router.host in workers:
            message = f"host {router.host} of an edge router is also the worker {workers[router.host]}"
            yield Finding(where, message, "give the router its own machine")
        before, also = routers.setdefault(router.host, (router.address, where))
        if before != router.address:
            message = f"host {router.host} is used by two edge routers, {before} and {router.address}"
            yield Finding(where, message, "give each its own machine", also=(also,))


RULES: tuple[tuple[str, Rule], ...] = (
    ("VPN-001", peers),
    ("VPN-002", single_router),
    ("VPN-003", way_to_the_region),
    ("VPN-005", asns),
    ("VPN-006", inside),
    ("VPN-006", inside_addresses_differ),
    ("VPN-007", public),
    ("VPN-008", machines),
)
