"""The lab's router and layer-2 networks, and the cables of its hosts.

All bridges are in the router's network namespace. The machine's own namespace has one cable to the router, and the
routes to the lab's ranges.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from sandbox.lab import plan, rules, shell, state
from sandbox.lab.plan import LabSpec, Segment

_PREFIX = "mgr-"
_RUN = Path("/run/netns")


@dataclass(frozen=True)
class Cable:
    """One network interface of a host.

    segment: name of a `Segment`. address: the host's, in the segment's range. further: additional addresses.
    routes: destinations ("default" or a range) reached through the segment's gateway, or on the segment when it has no
    gateway. guarded: the host may send from this address only. name: of the interface; default eth0, eth1 …
    """

    segment: str
    address: str
    routes: tuple[str, ...] = ()
    guarded: bool = False
    further: tuple[str, ...] = ()
    name: str = ""


def netns(name: str) -> str:
    """Return the network namespace of the lab's host or service `name`."""
    return f"{_PREFIX}{state.lab_id()}-{name}"


def prefix(lab: str) -> str:
    """Return the prefix of the names of a lab's namespaces."""
    return f"{_PREFIX}{lab}-"


def uplink() -> str:
    """Return the machine's end of its cable to the router."""
    return f"{_PREFIX}{state.lab_id()}"


def is_uplink(interface: str) -> bool:
    """Whether an interface of the machine belongs to any lab, including a dead one."""
    return interface.startswith(_PREFIX)


def names(lab: str | None = None) -> tuple[str, ...]:
    """Return the network namespaces of a lab (default: of every lab) on this machine."""
    start = prefix(lab) if lab else _PREFIX
    if not _RUN.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in _RUN.iterdir() if entry.name.startswith(start)))


def links(lab: str | None = None) -> tuple[str, ...]:
    """Return the network interfaces of a lab (default: of every lab) in the machine's own namespace."""
    present = [name for _, name in socket.if_nameindex() if name.startswith(_PREFIX)]
    return tuple(sorted(name for name in present if lab is None or name == f"{_PREFIX}{lab}"))


def ensure_router(spec: LabSpec) -> None:
    """Create the router, its bridges, the cable to the machine and the packet rules. Idempotent."""
    router = netns("router")
    add_namespace(router)
    for segment in plan.segments(spec).values():
        _ensure_bridge(router, segment)
    _ensure_uplink(router, spec)
    _inside(router, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0")
    # Where the kernel has br_netfilter, frames between two ports of a bridge would otherwise pass the router's rules.
    _inside(router, "sysctl", "-qew", "net.bridge.bridge-nf-call-iptables=0", "net.bridge.bridge-nf-call-arptables=0")
    load_rules(rules.router(spec))


def load_rules(text: str) -> None:
    """Load rules into the router's packet filter, all or none of them."""
    shell.run("nsenter", f"--net={_RUN / netns('router')}", "nft", "-f", "-", text=text)


def plug_in(host: str, cables: tuple[Cable, ...], spec: LabSpec) -> str:
    """Create the host's network namespace with one interface per cable; return its name."""
    segments = plan.segments(spec)
    inside = netns(host)
    unplug(host, cables)
    add_namespace(inside)
    for number, cable in enumerate(cables):
        _plug(host, cable.name or f"eth{number}", cable, segments[cable.segment])
    _plugged(host).parent.mkdir(parents=True, exist_ok=True)
    _plugged(host).touch()
    return inside


def ensure_plugged_in(host: str, cables: tuple[Cable, ...], spec: LabSpec) -> None:
    """Run `plug_in`, unless it already ran to completion."""
    if not _plugged(host).exists() or netns(host) not in names():
        plug_in(host, cables, spec)


def unplug(host: str, cables: tuple[Cable, ...]) -> None:
    """Remove the host's cables and namespace. Do nothing when they are gone."""
    _plugged(host).unlink(missing_ok=True)
    router = netns("router")
    if router in names():
        for cable in cables:
            port = plan.port(host, cable.segment)
            if cable.guarded:
                load_rules(rules.no_port(port))
            shell.succeeds("ip", "-n", router, "link", "delete", port)
    remove_namespace(netns(host))


def add_namespace(name: str) -> None:
    """Create a network namespace and bring its loopback up, if it is missing."""
    # Until Python 3.12, Path.is_mount() is False for every file.
    if not os.path.ismount(_RUN / name):
        remove_namespace(name)  # a killed `ip netns add` leaves a file with nothing mounted on it
        shell.run("ip", "netns", "add", name)
    shell.run("ip", "-n", name, "link", "set", "lo", "up")


def remove_namespace(name: str) -> None:
    """Remove a network namespace, if it exists."""
    if (_RUN / name).exists():
        shell.run("ip", "netns", "delete", name)


def remove_links(lab: str) -> None:
    """Remove a lab's interfaces, and with them its routes, from the machine's own namespace."""
    for link in links(lab):
        shell.succeeds("ip", "link", "delete", link)


def is_up(spec: LabSpec) -> bool:
    """Whether the router exists with every bridge and the cable to the machine."""
    router = netns("router")
    if router not in names() or uplink() not in links():
        return False
    present = shell.run("ip", "-n", router, "-brief", "link")
    return all(f"{segment.bridge} " in present for segment in plan.segments(spec).values())


def _plugged(host: str) -> Path:
    """Return the file that exists when every cable of the host is in place."""
    return state.folder("plugged", host)


def _plug(host: str, name: str, cable: Cable, segment: Segment) -> None:
    router, inside, port = netns("router"), netns(host), plan.port(host, cable.segment)
    mac, prefix = plan.mac(host, cable.segment), segment.network.prefixlen
    isolated = " isolated on" if cable.guarded else ""
    shell.batch(
        [
            f"link add {port} mtu {segment.mtu} type veth peer name {name} mtu {segment.mtu} address {mac} netns {inside}",
            f"link set {port} master {segment.bridge} up",
            *([f"link set {port} type bridge_slave{isolated}"] if isolated else []),
        ],
        router,
    )
    through = f"via {segment.gateway} " if segment.gateway else ""
    shell.batch(
        [
            f"addr add {cable.address}/{prefix} dev {name}",
            *(f"addr add {address}/32 dev {name}" for address in cable.further),
            f"link set {name} up",
            *(f"route add {destination} {through}dev {name}" for destination in cable.routes),
        ],
        inside,
    )
    if cable.guarded:
        load_rules(rules.only_own_address(port, mac, IPv4Address(cable.address)))


def _ensure_bridge(router: str, segment: Segment) -> None:
    lines = []
    if f"{segment.bridge} " not in shell.run("ip", "-n", router, "-brief", "link"):
        lines.append(f"link add {segment.bridge} mtu {segment.mtu} type bridge")
    if segment.gateway:
        lines.append(f"addr replace {segment.gateway}/{segment.network.prefixlen} dev {segment.bridge}")
    shell.batch([*lines, f"link set {segment.bridge} up"], router)


def _ensure_uplink(router: str, spec: LabSpec) -> None:
    ours, theirs = plan.UPLINK_RANGE[1], plan.UPLINK_RANGE[2]
    if uplink() not in links() or f"{rules.UPLINK}@" not in shell.run("ip", "-n", router, "-brief", "link"):
        # The kernel cleans up a namespace after its name is gone, so the cable of a former router may still exist.
        shell.succeeds("ip", "link", "delete", uplink())
        shell.run("ip", "link", "add", uplink(), "type", "veth", "peer", "name", rules.UPLINK, "netns", router)
    shell.batch([f"addr replace {theirs}/30 dev {rules.UPLINK}", f"link set {rules.UPLINK} up"], router)
    routed = [segment.network for segment in plan.segments(spec).values() if segment.gateway]
    shell.batch(
        [
            f"addr replace {ours}/30 dev {uplink()}",
            f"link set {uplink()} up",
            *(f"route replace {network} via {theirs} dev {uplink()}" for network in routed),
        ]
    )


def _inside(name: str, *argv: str) -> str:
    # `nsenter --net` keeps the machine's /sys, which sysctl does not need.
    return shell.run("nsenter", f"--net={_RUN / name}", *argv)
