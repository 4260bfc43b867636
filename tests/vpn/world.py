"""A site with an edge router, and two clusters in two clouds whose gateways have two ends each.

The site's router has the same files as from role vpn_gateway. Only IPsec differs: on kernels without ESP it runs in user space,
where a daemon has one TUN device and claims the route to everything behind its tunnels. So each tunnel has its own daemon in
its own network namespace, and the tunnel's interface is a cable to there. Like an XFRM interface, it has a fixed MTU and no
ARP, and it is up while there are keys.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import MappingProxyType

from host_program import declared

from network import frr, swanctl, tunnel_rules
from network.gateway import Joined, Line, RouterConfig, routers, settings
from tests.vpn.machines import Machine, wait, wire

PROGRAM = Path(__file__).parents[2] / "roles" / "vpn_gateway" / "files" / "menagerie_vpn"
ROUTER = "203.0.113.10"
RACK, PEOPLE = "10.8.1.0/24", "10.9.0.0/24"
RESEARCHER = "10.9.0.20"
NODES = MappingProxyType({"jaguar": "10.32.0.0/16", "horus": "10.40.0.0/16"})
ENDS = MappingProxyType({"jaguar": ("203.0.113.21", "203.0.113.22"), "horus": ("203.0.113.31", "203.0.113.32")})
UNDERLAY = MappingProxyType({"jaguar": 1500, "horus": 1440})
"""MTU of the paths to the clouds. strongSwan's device in user space reads at most 1400 bytes; on AWS a tunnel has more at 1500."""
INSIDE = MappingProxyType({"jaguar": "169.254.21.0/29", "horus": "169.254.6.0/29"})
CLOUDS = MappingProxyType({"jaguar": "azure", "horus": "aws"})
HOSTS = MappingProxyType({"jaguar": "10.32.0.10", "horus": "10.40.0.10"})
HEAD = ("frr defaults traditional", "log file /var/log/frr/frr.log")
LOOSE = (" no bgp ebgp-requires-policy", " no bgp network import-check")
KEY = 'a key with "quotes" and {braces}'


def router(build) -> RouterConfig:
    """Return the site's router, from two specs."""
    joined = []
    for name, cloud in CLOUDS.items():
        vpn = {
            "asn": 65010,
            "inside": INSIDE[name],
            "networks": [PEOPLE],
            "underlay_mtu": UNDERLAY[name],
            "routers": {"edge-1": {"address": ROUTER, "host": "10.8.1.1", "psk": {"secret": f"vpn-{name}"}}},
        }
        sites = {"onprem": None, "sjc1": {"racks": {"r1": RACK}, "vpn": vpn}}
        spec = {"name": name, "control_plane": {"cloud": cloud}, "network": {"nodes": NODES[name]}, "sites": sites}
        joined.append(Joined(build(spec, {}), {"sjc1/edge-1": ENDS[name]}))
    (edge_router,) = routers(joined)
    return edge_router


USER_SPACE = """\
charon {
  plugins {
    kernel-libipsec {
      load = yes
    }
    kernel-netlink {
      fwmark = 0x4242
    }
  }
  filelog {
    log {
      path = /var/log/charon.log
      flush_line = yes
    }
  }
}
"""
"""The daemon's own routes apply only to packets with a mark, and no packet has it."""


def daemon(machine: Machine, connections: str, keys: str) -> None:
    """Start strongSwan with ESP in user space; its device is ipsec0."""
    machine.write("/etc/strongswan.d/menagerie.conf", swanctl.daemon())
    machine.write("/etc/strongswan.d/zz-test.conf", USER_SPACE)
    machine.write("/etc/swanctl/conf.d/menagerie.conf", connections)
    machine.write("/etc/swanctl/conf.d/menagerie-keys.conf", keys, mode="0600")
    machine.start("/usr/sbin/charon-systemd")
    wait(lambda: machine.ask("swanctl", "--stats").returncode == 0, 10, f"{machine.name} runs strongSwan")


def answering(line: Line) -> str:
    """Return the connection of the gateway's end."""
    text = swanctl.connections([line], "true")
    text = re.sub(r"remote_addrs = .*", "remote_addrs = %any", text)
    text = re.sub(r"\n *(if_id_\w+|updown|\w+_action|keyingtries) = .*", "", text)
    peer, own = str(line.tunnel.peer), str(line.remote)
    return text.replace(peer, "@@").replace(own, peer).replace("@@", own)


def end_config(line: Line, fabric: str) -> str:
    """Return FRR's configuration of a gateway's end. It announces what it must not: a default route and the other cluster's range."""
    other = next(nodes for cluster, nodes in NODES.items() if cluster != line.cluster)
    own, peer = line.tunnel.cloud, line.tunnel.edge.address.ip
    # FRR 8.4 sometimes never resolves a next hop over a route that was in the kernel before it started.
    out = [*HEAD, *([] if line.numbered else [f"ip route {peer}/32 ipsec0"])]
    out += [f"router bgp {own.asn}", f" bgp router-id {line.remote}", *LOOSE, " bgp graceful-restart"]
    out += [f" neighbor {peer} remote-as {line.tunnel.edge.asn}"]
    out += [f" neighbor {peer} timers {line.cloud.keepalive} {line.cloud.hold}", f" neighbor {peer} timers connect 2"]
    if not line.numbered:
        out += [f" neighbor {peer} ebgp-multihop 2", f" neighbor {peer} update-source {own.address.ip}"]
    out += [
        f" neighbor {fabric} remote-as {own.asn}",
        f" neighbor {fabric} timers connect 1",
        " address-family ipv4 unicast",
    ]
    out += [f"  network {network}" for network in (NODES[line.cluster], other, "0.0.0.0/0", RACK)]
    return "\n".join([*out, f"  neighbor {fabric} next-hop-self", " exit-address-family", "exit", ""])


def fabric_config(lines: list[Line]) -> str:
    """Return FRR's configuration of a region's network, which learns the routes to the site from the gateway's ends."""
    asn = lines[0].tunnel.cloud.asn
    out = [
        *HEAD,
        f"router bgp {asn}",
        f" bgp router-id {HOSTS[lines[0].cluster]}",
        *LOOSE,
        " bgp graceful-restart-disable",
    ]
    for line in lines:
        out += [f" neighbor {far(line)} remote-as {asn}", f" neighbor {far(line)} timers connect 1"]
    return "\n".join([*out, "exit", ""])


def near(line: Line) -> str:
    """Return the fabric's address on its cable to an end."""
    return f"192.168.{line.if_id & 0xFF}.1"


def far(line: Line) -> str:
    return f"192.168.{line.if_id & 0xFF}.2"


class World:
    """All machines; `end` removes them."""

    def __init__(self, folder: Path, programs: Path, router: RouterConfig) -> None:
        self._folder, self._programs = folder, programs
        self.machines: dict[str, Machine] = {}
        self.router = router
        self.lines = {line.name: line for line in router.lines}
        self.internet = self._machine("internet")
        self.internet.run("ip", "link", "add", "wan", "type", "bridge")
        self.internet.run("ip", "link", "set", "wan", "up")
        self.ends = {name: self._end(line) for name, line in self.lines.items()}
        self.fabrics = {cluster: self._fabric(cluster) for cluster in NODES}
        self.site = self._site()
        self.researcher = self._machine("researcher")
        wire(self.site, "lan", self.researcher, "eth0")
        self.site.run("ip", "address", "add", "10.9.0.1/24", "dev", "lan")
        self.researcher.run("ip", "address", "add", f"{RESEARCHER}/24", "dev", "eth0")
        self.researcher.run("ip", "route", "add", "default", "via", "10.9.0.1")

    def end(self) -> None:
        for machine in self.machines.values():
            machine.end()

    def _machine(self, name: str, network: Machine | None = None) -> Machine:
        self.machines[name] = Machine(name, self._folder, self._programs, network)
        return self.machines[name]

    def _online(self, machine: Machine, address: str, mtu: int = 1500) -> None:
        port = f"port-{address.rpartition('.')[2]}"
        wire(self.internet, port, machine, "wan", mtu)
        self.internet.run("ip", "link", "set", port, "master", "wan")
        machine.run("ip", "address", "add", f"{address}/24", "dev", "wan")

    def _end(self, line: Line) -> Machine:
        """Start a gateway's end: its own daemon, BGP, and a cable to the region's network."""
        machine = self._machine(line.name)
        self._online(machine, str(line.remote), UNDERLAY[line.cluster])
        daemon(machine, answering(line), swanctl.secrets([line], {line.name: KEY}).replace(str(line.remote), ROUTER))
        machine.run("ip", "link", "set", "ipsec0", "mtu", str(line.tunnel.mtu), "up")
        machine.run("ip", "address", "add", str(line.tunnel.cloud.address), "dev", "ipsec0")
        machine.run("sysctl", "-q", "net.ipv4.ip_forward=1")
        machine.run("swanctl", "--load-all", "--noprompt")
        return machine

    def _fabric(self, cluster: str) -> Machine:
        machine = self._machine(f"{cluster}-fabric")
        machine.run("sysctl", "-q", "net.ipv4.ip_forward=1")
        machine.run("ip", "address", "add", f"{HOSTS[cluster]}/32", "dev", "lo")
        lines = [line for line in self.lines.values() if line.cluster == cluster]
        for line in lines:
            end = self.ends[line.name]
            wire(machine, line.name, end, "fabric")
            machine.run("ip", "address", "add", f"{near(line)}/30", "dev", line.name)
            end.run("ip", "address", "add", f"{far(line)}/30", "dev", "fabric")
            end.run("ip", "route", "add", NODES[cluster], "via", near(line))
            end.start_frr(end_config(line, near(line)))
        machine.start_frr(fabric_config(lines))
        return machine

    def _site(self) -> Machine:
        """Start the router, with the files of its role."""
        site = self._machine("site")
        self._online(site, ROUTER)
        site.run("sysctl", "-q", "net.ipv4.ip_forward=1")
        site.write("/etc/menagerie/vpn.json", json.dumps(settings(self.router)))
        site.write("/etc/menagerie/vpn.nft", tunnel_rules.rules(self.router))
        self._program(site)
        site.run("menagerie-vpn", "rules")
        self.daemons = {line.name: self._tunnel(site, line, number) for number, line in enumerate(self.router.lines)}
        site.run("menagerie-vpn", "links")
        site.start_frr(frr.config(self.router), "-K", "60")
        return site

    def _tunnel(self, site: Machine, line: Line, number: int) -> Machine:
        mine = self._machine(f"site-{line.name}")
        self._online(mine, f"203.0.113.{11 + number}", UNDERLAY[line.cluster])
        wire(site, line.interface, mine, "clear")
        for machine, name in ((site, line.interface), (mine, "clear")):
            machine.run("ip", "link", "set", name, "down")
            machine.run("ip", "link", "set", name, "address", "02:00:00:00:00:01", "arp", "off")
        self._program(mine)
        at_site = f'#!/bin/sh\nexec nsenter --net=/run/outside/{site.pid}/ns/net "$@"\n'
        mine.write("/usr/local/sbin/at-site", at_site, mode="0755")
        connections = swanctl.connections([line], "/usr/local/sbin/at-site /usr/local/sbin/menagerie-vpn")
        daemon(mine, connections, swanctl.secrets([line], {line.name: KEY}))
        for command in (
            "ip link set clear up",
            f"ip link set ipsec0 mtu {line.tunnel.mtu} up",
            "ip rule add iif clear lookup 101",
            "ip route add default dev ipsec0 table 101",
            "ip rule add iif ipsec0 lookup 100",
            "ip route add default dev clear table 100",
            "sysctl -q net.ipv4.ip_forward=1",
            "nft add table ip hop",
            "nft add chain ip hop in { type filter hook prerouting priority mangle ; }",
            # The cable must not count as a hop: BGP's packets have a TTL of 1.
            "nft add rule ip hop in ip ttl set 64",
        ):
            mine.run(*command.split(" "))
        return mine

    def _program(self, machine: Machine) -> None:
        for file in declared(PROGRAM, "/usr/local/sbin/menagerie-vpn"):
            machine.write(file["path"], file["text"], mode=file["mode"])

    def connect(self) -> None:
        for mine in self.daemons.values():
            mine.run("swanctl", "--load-all", "--noprompt")
