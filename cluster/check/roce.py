"""ROC-002 to ROC-005: the RDMA fabrics of sites. ROC-001 is checked on hosts; ROC-002 and ROC-003 at switches too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.roce import Roce, mtu_over

# Usual names of interfaces on top of ports; systemd.net-naming-scheme(7) never gives them to a port.
_NO_PORT = re.compile(r"(bond|team|br|vlan|vxlan|docker|cni|flannel|veth|lo)[\d.-]*$|.*\.\d+$")


def _fabrics(subject: Subject) -> Iterator[tuple[str, Where, Roce]]:
    for name, site in subject.spec.sites.items():
        if site.roce:
            yield name, ("sites", name, "roce"), site.roce


def link_mtu(subject: Subject) -> Iterator[Finding]:
    """The link MTU has room for the RoCE MTU: if it hasn't, Linux silently uses the largest one that fits."""
    for _, where, roce in _fabrics(subject):
        if roce.link_mtu < roce.least_link_mtu:
            message = (
                f"roce.mtu {roce.mtu} needs link MTU {roce.least_link_mtu} or more on every hop; "
                f"roce.link_mtu is {roce.link_mtu} (RDMA would drop to {mtu_over(roce.link_mtu)})"
            )
            yield Finding((*where, "link_mtu"), message, "write link_mtu: 9000", also=((*where, "mtu"),))


def distinct_marks(subject: Subject) -> Iterator[Finding]:
    """RDMA, its congestion notifications and all other traffic each have a different mark."""
    for _, where, roce in _fabrics(subject):
        for own, other, what, usual in (
            ("cnp_dscp", "dscp", "mark", "dscp: 26 and cnp_dscp: 48"),
            ("cnp_priority", "priority", "priority", "priority: 3 and cnp_priority: 6"),
        ):
            if getattr(roce, own) == getattr(roce, other):
                message = (
                    f"RDMA and its congestion notifications have the same {what}, {getattr(roce, own)}; "
                    "notifications would wait in the queue that they are meant to drain"
                )
                also = ((*where, other),)
                yield Finding((*where, own), message, f"give them different ones: {usual}", also=also)
        for key in ("dscp", "priority"):
            if getattr(roce, key) == 0:
                message = f"{key} 0 is the one of all other traffic; RDMA would share its queue"
                yield Finding((*where, key), message, f"write {key}: {26 if key == 'dscp' else 3}")


def own_ports(subject: Subject) -> Iterator[Finding]:
    """RoCE is only for the site's own machines, whose cards Menagerie configures."""
    spec = subject.spec
    for site, where, roce in _fabrics(subject):
        if subject.cluster.is_lab:
            message = f"site {site} of a lab has roce, which is only for physical cards"
            yield Finding(where, message, "remove roce")
            continue
        here = [name for name, pool in spec.pools.items() if pool.site == site]
        for name in roce.rails:
            place: Where = (*where, "rails", name)
            pool = spec.pools.get(name)
            also: tuple[Where, ...] = (("pools", name, "site"), ("pools", name, "machine"))
            if pool is None:
                message = f"roce is on for pool {name}, which isn't defined{did_you_mean(name, here)}"
                best = near(name, here)
                yield Finding(place, message, f"write {best[0]}" if best else f"remove {name}", also=(("pools", name),))
            elif pool.site is None:
                message = f"roce is on for pool {name} in {spec.control_plane.cloud}; it is only for on-prem cards"
                yield Finding(
                    place,
                    message,
                    f"remove {name}; with rdma: true the pool gets the cloud's own kind of RDMA",
                    also=also,
                )
            elif pool.site != site:
                message = f"roce of {site} is on for pool {name}, which is at {pool.site}; a fabric joins one site"
                yield Finding(place, message, f"move it to sites.{pool.site}.roce.rails", also=also)


def devices(subject: Subject) -> Iterator[Finding]:
    """Each rail of a pool is one port, different from those of the other rails."""
    for _, where, roce in _fabrics(subject):
        for pool, rails in roce.rails.items():
            rail_of: dict[str, str] = {}
            for rail, device in rails.items():
                place: Where = (*where, "rails", pool, rail)
                name = f"rail {rail} of pool {pool}"
                if (device.pci is None) == (device.interface is None):
                    message = f"{name} has {'both pci and interface' if device.pci else 'neither pci nor interface'}"
                    yield Finding(place, message, 'write one of the two, for example pci: "0000:1a:00.0"')
                elif device.interface and _NO_PORT.match(device.interface):
                    message = (
                        f"{name} is {device.interface}, which isn't a port; "
                        "RDMA is bound to a port and its card, which bonds and bridges hide"
                    )
                    yield Finding(place, message, "name the port itself; give each port of a bond its own rail")
                elif str(device) in rail_of:
                    message = f"{name} is {device}, which is already {rail_of[str(device)]}"
                    before = (*where, "rails", pool, rail_of[str(device)])
                    yield Finding(place, message, "correct one of the two, or remove it", also=(before,))
                rail_of.setdefault(str(device), rail)
            if not rails:
                yield Finding((*where, "rails", pool), f"pool {pool} has no rail", f"add its ports, or remove {pool}")


RULES: tuple[tuple[str, Rule], ...] = (
    ("ROC-002", link_mtu),
    ("ROC-003", distinct_marks),
    ("ROC-004", own_ports),
    ("ROC-005", devices),
)
