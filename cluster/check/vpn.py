"""VPN-001 to VPN-008: how sites are joined to the region. VPN-004 is the model's own."""

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
    """(place of its address, what it belongs to, router) of every edge router."""
    for site, vpn in _joined(checked):
        for name, router in vpn.routers.items():
            yield ("sites", site, "vpn", "routers", name, "address"), vpn, router


def peers(subject: Subject) -> Iterator[Finding]:
    """One router, one place and one ASN; and something behind it."""
    foreign = {
        router.address: (vpn.asn, other.named((*where[:3], "asn")))
        for other in subject.others
        for where, vpn, router in _routers(other)
    }
    seen: dict[IPv4Address, Where] = {}
    for where, vpn, router in _routers(subject):
        asn, cluster = foreign.get(router.address, (vpn.asn, ""))
        if router.address in seen:
            before = seen[router.address]
            message = (
                f"{router.address} is given to {show(before[:-1])} and {show(where[:-1])}; no two have one address"
            )
            yield Finding(where, message, "correct one of the two, or remove it", also=(before,))
        elif asn != vpn.asn:
            message = f"{router.address} has ASN {vpn.asn} here and {asn} in cluster {cluster}; a router has one"
            yield Finding(where, message, f"write the same asn in both: {asn}", also=((*where[:3], "asn"),))
        seen.setdefault(router.address, where)
    for site, vpn in _joined(subject):
        if not subject.spec.sites[site].racks and not vpn.networks:
            message = f"sites.{site}.vpn leads to no rack; the gateway would learn no route"
            hint = f"give {site} its racks or the vpn its networks, or remove the vpn"
            yield Finding(("sites", site, "vpn"), message, hint)


def single_router(subject: Subject) -> Iterator[Finding]:
    """OpenAI's single tunnel took a whole worker group with it."""
    if subject.spec.profile is Profile.DEVELOPMENT:
        return
    for site, vpn in _joined(subject):
        if len(vpn.routers) == 1 and not vpn.allow_single_router:
            where = ("sites", site, "vpn", "routers")
            message = (
                f"site {site} is joined by one edge router, {next(iter(vpn.routers))}; "
                "while it is down, the site's workers have no control plane"
            )
            hint = "add a second, or set allow_single_router: true"
            yield Finding(where, message, hint, also=((*where[:-1], "allow_single_router"),))


def way_to_the_region(subject: Subject) -> Iterator[Finding]:
    """Workers open every connection, to the load balancer in network.nodes."""
    spec, joined = subject.spec, dict(_joined(subject))
    if not joined:
        return
    workers = Counter(spec.pools[pool].site for pool, _ in subject.cluster.host_list())
    for site in spec.sites:
        if site not in joined and workers[site]:
            message = (
                f"site {site} has {workers[site]} workers and no vpn, while {next(iter(joined))} has one; "
                f"without a way to network.nodes {spec.network.nodes} they can't join"
            )
            hint = "give it a vpn; this is no mistake where a line of your own leads to the region"
            yield Finding(("sites", site), message, hint, severity="warning")


def asns(subject: Subject) -> Iterator[Finding]:
    """BGP takes a route with its own ASN in its path for a loop."""
    ours = gateway(subject.spec)
    taken = ours.asns | {ours.asn} | {vpn.asn for _, vpn in _joined(subject)}
    free = next((asn for asn in _PRIVATE_ASNS if asn not in taken), 4_200_000_000)
    hint = f"choose a private one (RFC 6996), for example {free}"
    seen: dict[int, str] = {}
    for site, vpn in _joined(subject):
        where: Where = ("sites", site, "vpn", "asn")
        if vpn.asn == ours.asn:
            message = f"ASN {vpn.asn} is that of the cloud's gateway, which would drop what {site} announces"
            yield Finding(where, message, hint)
        elif vpn.asn in ours.asns:
            message = f"ASN {vpn.asn} is reserved by IANA or by {subject.spec.control_plane.cloud}; no site can have it"
            yield Finding(where, message, hint)
        elif vpn.asn in seen:
            message = (
                f"ASN {vpn.asn} is given to {seen[vpn.asn]} and {site}; BGP would take routes between them for a loop"
            )
            yield Finding(where, message, hint, also=(("sites", seen[vpn.asn], "vpn", "asn"),))
        seen.setdefault(vpn.asn, site)


def inside(subject: Subject) -> Iterator[Finding]:
    """Addresses inside tunnels: enough of them, and such as the gateway takes."""
    for site, vpn in _joined(subject):
        if problem := _inside_problem(subject, vpn):
            where: Where = ("sites", site, "vpn")
            yield Finding(
                (*where, "inside"), f"inside {vpn.inside} {problem}", _free(subject, vpn), also=((*where, "routers"),)
            )


def _inside_problem(subject: Subject, vpn: Vpn) -> str:
    ours, cloud = gateway(subject.spec), subject.spec.control_plane.cloud
    if vpn.inside.prefixlen > prefix_for(vpn):
        return f"has no room for {ENDS * len(vpn.routers)} tunnels of a /{TUNNEL_PREFIX} each"
    if not any(vpn.inside.subnet_of(block) for block in ours.inside):
        return f"isn't in {' or '.join(map(str, ours.inside))}, where gateways of {cloud} have their addresses"
    kept = next((network for network in ours.kept if network.overlaps(vpn.inside)), None)
    return f"overlaps {kept}, which {cloud} keeps for itself" if kept else ""


def inside_apart(subject: Subject) -> Iterator[Finding]:
    """No two tunnels of a gateway, and none of a router, are alike inside."""
    joined = list(_joined(subject))
    for number, (site, vpn) in enumerate(joined):
        where: Where = ("sites", site, "vpn", "inside")
        for name, other in joined[:number]:
            if vpn.inside.overlaps(other.inside):
                message = f"inside {vpn.inside} overlaps {other.inside} of {name}; two tunnels would have one address"
                yield Finding(where, message, _free(subject, vpn), also=(("sites", name, "vpn", "inside"),))
        for cluster, other in _at_the_same_router(subject, vpn):
            if vpn.inside.overlaps(other.inside):
                message = f"inside {vpn.inside} overlaps {other.inside} of cluster {cluster}, at the same router"
                yield Finding(where, message, _free(subject, vpn))


def _at_the_same_router(subject: Subject, vpn: Vpn) -> Iterator[tuple[str, Vpn]]:
    """(cluster and where it says so, its vpn) of the clusters that a router of this site is joined to as well."""
    own = {router.address for router in vpn.routers.values()}
    for other in subject.others:
        for site, theirs in _joined(other):
            if any(router.address in own for router in theirs.routers.values()):
                yield other.named(("sites", site, "vpn", "inside")), theirs


def _free(subject: Subject, vpn: Vpn) -> str:
    taken = [other.inside for _, other in _joined(subject) if other is not vpn]
    taken += [theirs.inside for _, theirs in _at_the_same_router(subject, vpn)]
    prefix = prefix_for(vpn)
    found = gateway(subject.spec).free(prefix, taken)
    return f"choose a /{prefix}, for example {found}" if found else "remove sites; the gateway has no range left"


def public(subject: Subject) -> Iterator[Finding]:
    """The gateway answers over the Internet; a lab has none."""
    if subject.cluster.is_lab:
        return
    for where, _, router in _routers(subject):
        passes = router.address.is_global and not router.address.is_multicast
        if not passes and not any(router.address in block for block in DOCUMENTATION):
            message = (
                f"edge router {where[-2]} has the address {router.address}, which isn't public; no gateway reaches it"
            )
            yield Finding(
                where, message, "write the address that the router, or the NAT before it, has on the Internet"
            )


def machines(subject: Subject) -> Iterator[Finding]:
    """A router that is configured is one machine, and does nothing else."""
    workers = {host.address: host.name for _, host in subject.cluster.host_list()}
    foreign = {
        router.address: (router.host, other.named(where))
        for other in subject.others
        for where, _, router in _routers(other)
    }
    seen: dict[IPv4Address, tuple[IPv4Address, Where]] = {}
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
            message = f"host {router.host} of an edge router is the worker {workers[router.host]}"
            yield Finding(where, message, "give the router a machine of its own")
        before, also = seen.setdefault(router.host, (router.address, where))
        if before != router.address:
            message = f"host {router.host} is given to two edge routers, {before} and {router.address}"
            yield Finding(where, message, "give each a machine of its own", also=(also,))


RULES: tuple[tuple[str, Rule], ...] = (
    ("VPN-001", peers),
    ("VPN-002", single_router),
    ("VPN-003", way_to_the_region),
    ("VPN-005", asns),
    ("VPN-006", inside),
    ("VPN-006", inside_apart),
    ("VPN-007", public),
    ("VPN-008", machines),
)
