"""INV-001, INV-002, INV-005, INV-012: the machines of the hosts files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.check.finding import Checked, Finding, Rule, Subject
from cluster.check.ranges import holder
from cluster.document import Where
from cluster.layout import KINDS, OF_THE_API
from cluster.pools import Host

_HEX_BYTE = re.compile(r"[0-9A-Fa-f]{2}")
_CLOUD_SIDE = re.compile(rf"({'|'.join(KINDS)})-\d+")


def _identities(checked: Checked, *, names: bool) -> Iterator[tuple[str, Where, str]]:
    """Yield (what must be unique, its place, its host). Names are unique in a cluster, the rest everywhere."""
    for where, _, host in checked.hosts():
        if names:
            yield f"name {host.name}", (*where, "name"), host.name
        yield str(host.address), (*where, "address"), host.name
        macs = [(place, plain_mac(mac)) for place, mac in _macs(where, host)]
        on_links = {mac for place, mac in macs if len(place) > len(where) + 1}
        for place, mac in macs:
            if len(place) > len(where) + 1 or mac not in on_links:
                yield f"MAC {mac}", place, host.name
        if host.bmc:
            yield str(host.bmc), (*where, "bmc"), host.name


def _macs(where: Where, host: Host) -> list[tuple[Where, str]]:
    """Return (place, MAC) of the card with the host's address and of its links. One card can be listed as both."""
    macs: list[tuple[Where, str]] = [((*where, "mac"), host.mac)] if host.mac is not None else []
    return macs + [((*where, "links", name, "mac"), cable.mac) for name, cable in host.links.items() if cable.mac]


def plain_mac(mac: str) -> str:
    """Return a MAC in lower case with colons."""
    return ":".join(re.findall("..?", re.sub(r"[:.-]", "", mac).lower()))


def no_duplicates(subject: Subject) -> Iterator[Finding]:
    """Names, addresses, MACs and BMC addresses are unique, also among the clusters loaded together."""
    foreign = {
        what: (host, f"{other.positions.mark(where).file} {other.line(where)}")
        for other in subject.others
        for what, where, host in _identities(other, names=False)
    }
    owners: dict[str, tuple[str, Where]] = {}
    for what, where, host in _identities(subject, names=True):
        hint = "correct one of the two, or remove it"
        if what in owners:
            before, place = owners[what]
            earlier, mark = subject.positions.mark(place), subject.positions.mark(where)
            file = "" if earlier.file == mark.file else f"{earlier.file} "
            first, second = f"{file}{earlier.spot}", mark.spot
            message = f"{what} is given to {before} ({first}) and {host} ({second})"
            if where[-1] == "name":
                message = f"two hosts are named {host} ({first} and {second})"
            yield Finding(where, message, hint, also=(place,))
        elif what in foreign:
            before, position = foreign[what]
            yield Finding(where, f"{what} is given to {before} ({position}) and {host} ({subject.line(where)})", hint)
        owners.setdefault(what, (host, where))
    for where, _, machine in subject.hosts():
        if _CLOUD_SIDE.fullmatch(machine.name):
            message = f"{machine.name} is a name reserved for hosts of the control plane"
            yield Finding((*where, "name"), message, f"write another, for example worker-{machine.name}")
        if machine.name in OF_THE_API:
            message = f"{machine.name} is a name of the API; its kubelet would get no serving certificate"
            yield Finding((*where, "name"), message, f"write another, for example worker-{machine.name}")


_ANSIBLES = {
    "all": "the group of all machines",
    "ungrouped": "Ansible's group of machines without a group",
    "localhost": "the machine that Ansible runs on",
}


def not_a_group(subject: Subject) -> Iterator[Finding]:
    """No host has the name of a group: --limit gpu-a would run on the whole pool, where a person expects one host."""
    taken = dict(_ANSIBLES)
    taken |= {name: "a site" for name in subject.spec.sites} | {name: "a pool" for name in subject.spec.pools}
    for where, _, host in subject.hosts():
        if host.name in taken:
            message = f"a host is named {host.name}, which is {taken[host.name]}; a run limited to it could mean either"
            yield Finding((*where, "name"), message, f"write another, for example {host.name}-1")


def mac_address(subject: Subject) -> Iterator[Finding]:
    """A MAC is six bytes and belongs to one network card."""
    for where, _, host in subject.hosts():
        for place, mac in _macs(where, host):
            if problem := _mac_problem(mac):
                hint = "read it from the machine's label or its BMC, for example b8:59:9f:aa:bb:cc"
                yield Finding(place, f"{host.name}: {problem}", hint)


def _mac_problem(mac: str) -> str:
    parts = re.split(r"[:-]", mac)
    bad = next((part for part in parts if not _HEX_BYTE.fullmatch(part)), None)
    if len(parts) == 1 or (bad is not None and len(parts) == 6):
        return f"MAC {mac} isn't six bytes in hexadecimal with ':' between them"
    if len(parts) != 6:
        return f"MAC {mac} has {len(parts)} bytes, expected 6"
    values = [int(part, 16) for part in parts]
    if not any(values):
        return f"MAC {mac} is all zeros, which no card has"
    if values[0] & 1:
        kind = "the broadcast address" if set(values) == {255} else "a multicast address"
        return f"MAC {mac} is {kind}, which no card has"
    return ""


def inside_rack(subject: Subject) -> Iterator[Finding]:
    """A host's address is in its rack's subnet, where the rack's router delivers packets."""
    rack_of = {name: holder(site.racks) for name, site in subject.spec.sites.items()}
    for where, pool, host in subject.hosts():
        site_name = subject.spec.pools[pool].site or ""
        site = subject.spec.sites.get(site_name)
        network = site.racks.get(host.rack) if site else None
        if network is None or site is None:
            continue
        place = (*where, "address")
        also: tuple[Where, ...] = ((*where, "rack"), ("sites", site_name, "racks", host.rack), ("pools", pool, "site"))
        if host.address not in network:
            right = rack_of[site_name](host.address)
            hint = f"write rack: {right}" if right else f"write an address in {network}"
            message = f"{host.name} {host.address} isn't in rack {host.rack}'s subnet {network}; nothing would reach it"
            yield Finding(place, message, hint, also=also)
        elif network.prefixlen < 31 and host.address in (network.network_address, network.broadcast_address):
            which = "network" if host.address == network.network_address else "broadcast"
            message = f"{host.name} {host.address} is the {which} address of rack {host.rack} ({network})"
            yield Finding(place, message, f"write another address in {network}", also=also)
        elif subject.cluster.is_lab and host.address == network[1]:
            message = f"{host.name} {host.address} is the first address of rack {host.rack}, which belongs to the lab's router"
            yield Finding(place, message, f"write another address in {network}", also=also)


RULES: tuple[tuple[str, Rule], ...] = (
    ("INV-001", no_duplicates),
    ("INV-002", mac_address),
    ("INV-005", inside_rack),
    ("INV-012", not_a_group),
)
