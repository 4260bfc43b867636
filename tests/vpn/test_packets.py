"""Packets through real strongSwan and FRR, from a site to two clusters; docs/how-to/vpn.md has the measurements from here."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from network.swanctl import DPD_DELAY_S, give_up_s
from tests.vpn.machines import Machine, wait
from tests.vpn.world import HOSTS, NODES, PEOPLE, RACK, RESEARCHER, World

pytestmark = [pytest.mark.engine, pytest.mark.timed, pytest.mark.xdist_group("vpn")]

ACCEPT = """
import socket
s = socket.create_server(("HOST", 7000)); print("listening", flush=True)
c, _ = s.accept(); print(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), flush=True)
c.sendall(b"x" * 300000); c.shutdown(1); n = 0
while part := c.recv(65536): n += len(part)
print(n)
"""
CONNECT = """
import socket
c = socket.create_connection(("HOST", 7000), 5); print(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
c.sendall(b"y" * 300000); c.shutdown(1); n = 0
while part := c.recv(65536): n += len(part)
print(n)
"""

MORE = 10
"""Packets to each host after the last path to it is gone."""


def established(machine: Machine) -> int:
    peers = machine.vtysh("show bgp ipv4 unicast summary").get("peers", {})
    return sum(peer["state"] == "Established" for peer in peers.values())


@pytest.fixture(scope="module", autouse=True)
def up(world: World) -> None:
    seconds = wait(lambda: established(world.site) == len(world.lines), 30, "BGP through every tunnel")
    print(f"all tunnels up, with BGP, after {seconds:.1f} s")
    for name, end in world.ends.items():
        wait(lambda m=end: m.route(PEOPLE), 10, f"{name} knows where the site is")
    for cluster, machine in world.fabrics.items():
        wait(lambda m=machine: len(m.route(PEOPLE)) == 2, 10, f"{cluster} knows two ways to the site")
    wait(lambda: all(len(world.site.route(nodes)) == 2 for nodes in NODES.values()), 10, "two ways to each cluster")


def learnt(machine: Machine, peer: object) -> set[str]:
    return set(machine.vtysh(f"show bgp ipv4 unicast neighbors {peer} routes")["routes"])


def test_people_at_the_site_reach_every_cluster(world: World) -> None:
    for host in HOSTS.values():
        assert world.researcher.pings(host)


def test_routes_come_from_the_spec_whatever_the_other_end_announces(world: World) -> None:
    for name, line in world.lines.items():
        assert learnt(world.site, line.tunnel.cloud.address.ip) == {NODES[line.cluster]}
        assert learnt(world.ends[name], line.tunnel.edge.address.ip) == {RACK, PEOPLE}
    for host in HOSTS.values():
        reply = json.loads(world.site.run("ip", "-j", "route", "get", host, "from", RESEARCHER, "iif", "lan"))
        assert reply[0]["dev"].startswith("vpn-")


def test_clusters_do_not_reach_each_other_even_with_a_route_to_the_site(world: World) -> None:
    """With their own route into the tunnel, which would work without the site's rules."""
    (first, second) = HOSTS.items()
    for line in world.lines.values():
        foreign = next(nodes for cluster, nodes in NODES.items() if cluster != line.cluster)
        world.ends[line.name].run("ip", "route", "replace", foreign, "dev", "ipsec0")
    for (cluster, host), (_, target) in ((first, second), (second, first)):
        assert not world.fabrics[cluster].pings(target, "-I", host)
    world.site.run("nft", "delete", "table", "inet", "menagerie_vpn")
    for (cluster, host), (_, target) in ((first, second), (second, first)):
        assert world.fabrics[cluster].pings(target, "-I", host)
    world.site.run("menagerie-vpn", "rules")
    for (cluster, host), (_, target) in ((first, second), (second, first)):
        assert not world.fabrics[cluster].pings(target, "-I", host)


def test_clusters_reach_only_bgp_on_the_router(world: World) -> None:
    ask = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.3)"
    server = world.site.start("python3", "-c", 'import socket,time; s = socket.create_server(("", 22)); time.sleep(60)')
    lan = "10.9.0.1"
    wait(lambda: world.researcher.ask("python3", "-c", ask, lan, "22").returncode == 0, 5, "the router listens")
    for name, line in world.lines.items():
        for address in (lan, str(line.tunnel.edge.address.ip)):
            assert world.ends[name].ask("python3", "-c", ask, address, "22").returncode
    server.terminate()


@pytest.mark.parametrize("cluster", HOSTS)
def test_a_packet_of_the_derived_size_crosses_whole_and_a_byte_more_does_not(world: World, cluster: str) -> None:
    mtu = next(line.tunnel.mtu for line in world.lines.values() if line.cluster == cluster)
    payload = mtu - 28
    assert world.researcher.pings(HOSTS[cluster], "-M", "do", "-s", str(payload))
    refused = world.researcher.ask(
        "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", str(payload + 1), HOSTS[cluster]
    )
    assert refused.returncode
    assert f"mtu = {mtu}" in refused.stdout
    world.researcher.run("ip", "route", "flush", "cache")
    # Nothing was fragmented on the path, not even outside of the tunnel.
    machines = [*world.daemons.values(), *world.ends.values(), world.site]
    assert {fragments(machine) for machine in machines} == {0}


def fragments(machine: Machine) -> int:
    keys, values = re.findall(r"^Ip: (.*)$", machine.run("cat", "/proc/net/snmp"), re.MULTILINE)
    return int(dict(zip(keys.split(), values.split(), strict=True))["FragCreates"])


@pytest.mark.parametrize("cluster", HOSTS)
def test_segments_of_tcp_have_the_derived_size_both_ways(world: World, cluster: str) -> None:
    mss = next(line.tunnel.mss for line in world.lines.values() if line.cluster == cluster)
    inside, outside = world.fabrics[cluster], world.researcher
    for machine in (inside, outside):
        machine.run("sysctl", "-q", "net.ipv4.tcp_timestamps=0", "net.ipv4.tcp_mtu_probing=0")
    server = inside.start("python3", "-c", ACCEPT.replace("HOST", HOSTS[cluster]))
    assert server.stdout
    assert server.stdout.readline() == "listening\n"
    output = outside.run("python3", "-c", CONNECT.replace("HOST", HOSTS[cluster])).split()
    assert [*server.communicate(timeout=10)[0].split(), *output] == [str(mss), "300000", str(mss), "300000"]


def test_new_keys_lose_no_packet_and_loading_the_same_settings_keeps_the_old_ones(world: World) -> None:
    host = HOSTS["horus"]
    line = world.lines[taken(world, host)]
    mine = world.daemons[line.name]
    before = sa(mine)
    mine.run("swanctl", "--load-all", "--noprompt")
    assert sa(mine) == before
    with silences(world, [host]) as longest:
        mine.run("swanctl", "--rekey", "--child", line.name)
        mine.run("swanctl", "--rekey", "--ike", line.name)
        wait(lambda: sa(mine)[0] != before[0] and sa(mine)[1] != before[1], 5, "new keys")
        time.sleep(0.3)
    assert longest[host] < 0.5
    assert ",UP," in world.site.run("ip", "link", "show", line.interface)


def sa(machine: Machine) -> tuple[str, str]:
    """Return the number of the IKE_SA and the SPI of the tunnel's key."""
    output = machine.run("swanctl", "--list-sas", "--raw")
    ike = re.search(r"uniqueid=(\d+)", output)
    child = re.search(r"spi-in=(\w+)", output)
    return (ike[1] if ike else ""), (child[1] if child else "")


@contextmanager
def silences(world: World, hosts: list[str]) -> Iterator[dict[str, float]]:
    """Yield host -> the longest time without an answer, in seconds; filled after the block."""
    longest = dict.fromkeys(hosts, 0.0)
    stop = threading.Event()

    def watch(host: str) -> None:
        last = time.monotonic()
        while not stop.is_set():
            if world.researcher.ask("ping", "-n", "-c", "1", "-W", "0.2", host).returncode == 0:
                last = time.monotonic()
            longest[host] = max(longest[host], time.monotonic() - last)
            time.sleep(0.05)

    watchers = [threading.Thread(target=watch, args=(host,)) for host in hosts]
    for watcher in watchers:
        watcher.start()
    try:
        yield longest
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()


def test_the_other_tunnel_takes_over_within_the_time_of_dead_peer_detection(world: World) -> None:
    """At one cluster an end of the gateway dies; at the other the path to it is cut, which both sides must notice."""
    dead, cut = (taken(world, HOSTS[cluster]) for cluster in HOSTS)
    limit = DPD_DELAY_S + give_up_s()
    with silences(world, list(HOSTS.values())) as longest:
        time.sleep(0.5)
        world.ends[dead].end()
        world.fabrics[world.lines[dead].cluster].run("ip", "link", "delete", dead)
        port = f"port-{str(world.lines[cut].remote).rpartition('.')[2]}"
        way = f'chain way {{ type filter hook forward priority 0; iifname "{port}" drop; oifname "{port}" drop; }}'
        world.internet.run("nft", "-f", "-", text=f"table bridge cut {{ {way}\n}}")
        gone = [world.lines[name].interface for name in (dead, cut)]
        wait(
            lambda: all("state DOWN" in world.site.run("ip", "link", "show", name) for name in gone), limit + 5, "down"
        )
        wait(lambda: all(world.researcher.pings(host) for host in HOSTS.values()), 15, "the other tunnel")
        time.sleep(0.5)
    print(f"without an answer: {longest}; limit of dead-peer detection {limit:.1f} s")
    assert max(longest.values()) < world.lines[cut].cloud.hold + 5
    assert longest[HOSTS[world.lines[dead].cluster]] < limit + 8
    world.internet.run("nft", "delete", "table", "bridge", "cut")
    back = wait(lambda: len(world.site.route(NODES[world.lines[cut].cluster])) == 2, 40, "the tunnel is back")
    print(f"back {back:.1f} s after the path was restored")


def taken(world: World, host: str) -> str:
    """Return the tunnel that people's packets to a host take."""
    output = json.loads(world.site.run("ip", "-j", "route", "get", host, "from", RESEARCHER, "iif", "lan"))
    return next(name for name, line in world.lines.items() if line.interface == output[0]["dev"])


def test_nothing_leaves_unencrypted_while_no_tunnel_is_up(world: World) -> None:
    """Neither at once nor later, although the router has a default route."""
    world.internet.run("ip", "address", "add", "203.0.113.1/24", "dev", "wan")
    world.site.run("ip", "route", "add", "default", "via", "203.0.113.1")
    leaks = "".join(f"ip daddr {host} counter; " for host in HOSTS.values())
    chain = f"chain seen {{ type filter hook prerouting priority 0; {leaks}ip daddr 203.0.113.1 counter; }}"
    world.internet.run("nft", "-f", "-", text=f"table ip leaks {{ {chain}\n}}")
    came = "".join(f"ip daddr {host} counter; " for host in HOSTS.values())
    chain = f"chain seen {{ type filter hook prerouting priority raw; {came}}}"
    world.site.run("nft", "-f", "-", text=f"table ip came {{ {chain}\n}}")
    with silences(world, list(HOSTS.values())):
        for line in world.lines.values():
            world.site.run("ip", "link", "set", line.interface, "down")
        wait(lambda: all(no_way(world, host) for host in HOSTS.values()), 15, "no route into a tunnel")
        before = counted(world.site, "came")
        wait(
            lambda: all(number - before[host] >= MORE for host, number in counted(world.site, "came").items()),
            30,
            "packets that the router has no way for",
        )
    for host in HOSTS.values():
        assert no_way(world, host)
    assert world.site.pings("203.0.113.1")
    assert counted(world.internet, "leaks") == {**dict.fromkeys(HOSTS.values(), 0), "203.0.113.1": 1}


def no_way(world: World, host: str) -> bool:
    return bool(world.site.ask("ip", "route", "get", host, "from", RESEARCHER, "iif", "lan").returncode)


def counted(machine: Machine, table: str) -> dict[str, int]:
    """Return address -> packets to it that a table counted."""
    listed = machine.run("nft", "list", "table", "ip", table)
    return {address: int(n) for address, n in re.findall(r"daddr (\S+) counter packets (\d+)", listed)}
