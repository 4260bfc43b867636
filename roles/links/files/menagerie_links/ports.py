"""Find the port of a link, and check that this host is the one in the hosts file."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .edge import NET, PCI, Edge, Finding, Refused

Settings = dict[str, Any]
NO_MAC = "00:00:00:00:00:00"


class Port(NamedTuple):
    """A port of a card. name: its current name."""

    name: str
    mac: str
    driver: str

    def __str__(self) -> str:
        return f"{self.name} ({self.driver or 'no driver'})"


def permanent_mac(edge: Edge, name: str) -> str:
    """Return the card's own MAC: all ports of a bond show the bond's."""
    own = edge.read(f"{NET}/{name}/bonding_slave/perm_hwaddr")
    if not own:
        _, said = edge.run("ethtool", "-P", name)
        match = re.search(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", said.lower())
        own = match[0] if match and match[0] != NO_MAC else edge.read(f"{NET}/{name}/address")
    return (own or "").lower()


def _port(edge: Edge, name: str) -> Port:
    return Port(name, permanent_mac(edge, name), edge.target(f"{NET}/{name}/device/driver"))


def _is_port(edge: Edge, name: str) -> bool:
    """Return False for bonds, bridges and VLANs, which have the MAC of a port under them."""
    path = f"{NET}/{name}"
    over = ("bonding", "bridge", "tun_flags", "device/physfn")
    if name == "lo" or any(edge.names(f"{path}/{part}") or edge.read(f"{path}/{part}") for part in over):
        return False
    return "DEVTYPE=vlan" not in (edge.read(f"{path}/uevent") or "")


def ports(edge: Edge, *, of_cards: bool = True) -> list[Port]:
    """Return the ports of this host's cards, or only the others: pods have hundreds."""
    names = [name for name in edge.names(NET) if bool(edge.target(f"{NET}/{name}/device")) == of_cards]
    return [_port(edge, name) for name in names if _is_port(edge, name)]


def find(edge: Edge, name: str, link: Settings) -> Port:
    """Return a link's port, whatever its current name. Refused if it is missing, or has another card's address."""
    if "pci" in link:
        return _by_pci(edge, name, link)
    every = ports(edge)
    own = [port for port in every or ports(edge, of_cards=False) if port.mac == link["mac"]]
    if not own:
        here = ", ".join(f"{port.name} {port.mac}" for port in every) or "no port"
        raise Refused("INV-003", f"no card of this host has {link['mac']}; there are: {here}")
    return next((port for port in own if port.name == name), own[0])


def _by_pci(edge: Edge, name: str, link: Settings) -> Port:
    """A card with its eSwitch on also shows representors: they have a phys_port_name such as pf0vf1."""
    interfaces = edge.names(f"{PCI}/{link['pci']}/net")
    if not interfaces:
        known = "has no network interface" if edge.names(f"{PCI}/{link['pci']}") else "is not in this host"
        raise Refused("LNK-007", f"the device {link['pci']} {known}")
    uplinks = [each for each in interfaces if "vf" not in (edge.read(f"{NET}/{each}/phys_port_name") or "")]
    port = _port(edge, name if name in uplinks else (uplinks or interfaces)[0])
    if "mac" in link and port.mac != link["mac"]:
        raise Refused("INV-003", f"the card at {link['pci']} has {port.mac}, the hosts file says {link['mac']}")
    return port


def identity(edge: Edge, settings: Settings) -> list[Finding]:
    """Check that this host has its address in the hosts file, on the card in the hosts file."""
    # Some versions of ip(8) show interfaces without an IPv4 address as {}.
    held = [
        (shown["ifname"], each.get("local"))
        for shown in edge.ip("-4", "address", "show")
        for each in shown.get("addr_info", [])
    ]
    holders = [name for name, address in held if address == settings["address"]]
    if not holders:
        own = sorted(str(address) for name, address in held if name != "lo")
        text = f"this host doesn't have the address {settings['address']}; it has {', '.join(own) or 'none'}"
        return [Finding("INV-004", "", text)]
    if "mac" not in settings:
        return []
    macs = {mac for holder in holders for mac in _macs_of(edge, holder)}
    if settings["mac"] in macs:
        return []
    text = f"{settings['address']} is on a card with {', '.join(sorted(macs))}, the hosts file says {settings['mac']}"
    return [Finding("INV-003", holders[0], text)]


def _macs_of(edge: Edge, name: str) -> set[str]:
    """Return the MACs of an interface and of the cards under it."""
    below = [each.removeprefix("lower_") for each in edge.names(f"{NET}/{name}") if each.startswith("lower_")]
    return {permanent_mac(edge, name), *(mac for each in below for mac in _macs_of(edge, each))}
