"""LNK-001 to LNK-004: the links of machines at sites. INV-003, INV-004 and LNK-005 to LNK-007 are checked on hosts."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.links import Link


def _links(subject: Subject) -> Iterator[tuple[str, str, Where, str, Link]]:
    """Yield (site, pool, place, name, link) of every declared link."""
    for site_name, site in subject.spec.sites.items():
        for pool, links in site.links.items():
            for name, link in links.items():
                yield site_name, pool, ("sites", site_name, "links", pool, name), name, link


def findable(subject: Subject) -> Iterator[Finding]:
    """Each link identifies one port, by PCI address or by the card's MAC."""
    ports: dict[tuple[str, str, str], tuple[str, Where]] = {}
    for site, pool, where, name, link in _links(subject):
        if link.pci:
            key = (site, pool, link.pci)
            if key in ports:
                before, place = ports[key]
                message = f"{name} of pool {pool} is {link.pci}, which is already {before}"
                yield Finding((*where, "pci"), message, "correct one of the two, or remove it", also=(place,))
            ports.setdefault(key, (name, where))
            continue
        for index, host in enumerate(subject.cluster.hosts.get(pool, ())):
            cable = host.links.get(name)
            if cable is None or cable.mac is None:
                place = ("pools", pool, "hosts", index)
                message = f"{host.name} doesn't say which port is {name}, and {name} of pool {pool} has no pci"
                hint = f"write links: {{{name}: {{mac: ...}}}} here, or pci there"
                yield Finding(place, message, hint, also=(where, (*place, "links")))


def cables(subject: Subject) -> Iterator[Finding]:
    """A switch port has one cable."""
    ends: dict[tuple[str, str, str], tuple[str, Where]] = {}
    for where, pool, host in subject.hosts():
        site = subject.spec.pools[pool].site or ""
        for name, cable in host.links.items():
            place: Where = (*where, "links", name)
            if (cable.switch is None) != (cable.port is None):
                has, lacks = ("switch", "port") if cable.port is None else ("port", "switch")
                message = f"{host.name}: {name} has a {has} but no {lacks}"
                yield Finding((*place, has), message, f"write the {lacks} too, or remove the {has}")
            elif cable.switch is not None:
                key = (site, cable.switch.lower(), str(cable.port).lower())
                end = f"{host.name} {name}"
                if key in ends:
                    before, other = ends[key]
                    message = f"{cable.switch} port {cable.port} is given to {before} and {end}"
                    yield Finding((*place, "port"), message, "correct one of the two", also=(other,))
                ends.setdefault(key, (end, (*place, "port")))


def mtus(subject: Subject) -> Iterator[Finding]:
    """The MTU of a port that is a rail is large enough for RDMA, and no larger than the switch's."""
    for site_name, pool, where, name, link in _links(subject):
        site = subject.spec.sites[site_name]
        rails = site.roce.rails.get(pool, {}) if site.roce else {}
        rail = next(
            (rail for rail, device in rails.items() if link.pci == device.pci or name == device.interface), None
        )
        if site.roce is None or rail is None:
            continue
        mtu = link.mtu or site.link_mtu
        least, most = site.roce.least_link_mtu, site.roce.link_mtu
        if not least <= mtu <= most:
            key, source = ("mtu", "its MTU") if link.mtu else ("pci", "site's link_mtu")
            message = f"{name} of pool {pool} is {rail} of the RDMA fabric, which needs {least} to {most} bytes; {source} is {mtu}"
            also: tuple[Where, ...] = (("sites", site_name, "link_mtu"), ("sites", site_name, "roce"))
            yield Finding((*where, key) if link.pci or link.mtu else where, message, f"write mtu: {most}", also=also)


def own_pools(subject: Subject) -> Iterator[Finding]:
    """Links are declared at the site of the pool, and cables only for declared links."""
    spec = subject.spec
    for site, settings in spec.sites.items():
        here = [name for name, pool in spec.pools.items() if pool.site == site]
        for pool in settings.links:
            if pool not in here:
                best = near(pool, here)
                place: Where = ("sites", site, "links", pool)
                message = f"sites.{site}.links names {pool}, which isn't a pool of that site{did_you_mean(pool, here)}"
                hint = f"write {best[0]}" if best else f"remove {pool}, or move it to the pool's site"
                yield Finding(place, message, hint, also=(("pools", pool),))
    for where, pool, host in subject.hosts():
        site_name = spec.pools[pool].site or ""
        declared = list(spec.sites[site_name].links.get(pool, {})) if site_name in spec.sites else []
        for name in host.links:
            if name not in declared:
                message = f"{host.name}: {name} isn't a link of pool {pool}{did_you_mean(name, declared)}"
                hint = f"declare it in sites.{site_name}.links.{pool}, or remove it"
                yield Finding((*where, "links", name), message, hint, also=(("sites", site_name),))


RULES: tuple[tuple[str, Rule], ...] = (
    ("LNK-001", findable),
    ("LNK-002", cables),
    ("LNK-003", mtus),
    ("LNK-004", own_pools),
)
