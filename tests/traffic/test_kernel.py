"""The real kernel's table: each packet of a pod counts once per direction, for its namespace, in the class of its other end."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from menagerie_traffic import layout
from menagerie_traffic.plan import planned
from menagerie_traffic.table import Count, Table

from tests.traffic.space import (
    CLASSES,
    GATEWAY,
    HAIRPIN,
    HOST,
    OWN_POD,
    PEERS,
    SERVICE,
    SERVICE_POD,
    STORAGE_HOST,
    Space,
)  # fmt: skip

A, B, STRANGER = OWN_POD, SERVICE_POD, "10.200.1.99"
PODS = {A: "team-a", B: "team-b"}
PORT, SIZE, TIMES = 7000, 500, 40
PACKET = SIZE + 28
"""Bytes of an IP packet with `SIZE` bytes in UDP."""
PLAN = planned({"classes": CLASSES, "interfaces": ["cni0"], "ceph_ports": ["3300", "6800-7568"]})


@pytest.fixture(scope="module")
def space() -> Iterator[Space]:
    if os.geteuid() != 0 or not shutil.which("nft"):
        pytest.skip("only root may make networks, with nft")
    made = Space()
    try:
        for address in (A, B, STRANGER):
            made.pod(address)
        yield made
    finally:
        made.close()


@pytest.fixture
def table(space: Space) -> Iterator[Table]:
    made = space.inside(HOST, lambda: Table(PLAN))
    made.rebuild(PODS)
    yield made
    made.remove()
    made.close()


def counted(table: Table) -> dict[str, Count]:
    return {name: count for name, count in table.counters().items() if count.packets}


def send(space: Space, source: str, target: str, times: int = TIMES, replies: bool = False) -> None:
    """Send datagrams; with `replies`, each is answered with one of the same size."""
    listener = target if target not in (SERVICE, HAIRPIN) else PODS_BEHIND[target]
    with space.udp(listener, PORT) as server, space.udp(source) as client:
        for _ in range(times):
            client.sendto(b"x" * SIZE, (target, PORT))
            data, peer = server.recvfrom(SIZE)
            if replies:
                server.sendto(data, peer)
                assert client.recv(SIZE) == data


PODS_BEHIND = {SERVICE: SERVICE_POD, HAIRPIN: OWN_POD}
ALL = Count(TIMES * PACKET, TIMES)


@pytest.mark.parametrize("kind", PEERS)
def test_what_a_pod_sends_and_receives_counts_once_in_the_class_of_the_other_end(space, table, kind) -> None:
    """All but the class pod is masqueraded on the way out, and translated back on the way in."""
    send(space, A, PEERS[kind], replies=True)
    assert counted(table) == {f"out/{kind}/team-a": ALL, f"in/{kind}/team-a": ALL}


@pytest.mark.parametrize("kind", PEERS)
def test_what_others_send_first_counts_too(space, table, kind) -> None:
    send(space, PEERS[kind], A, replies=True)
    assert counted(table) == {f"out/{kind}/team-a": ALL, f"in/{kind}/team-a": ALL}


def test_pods_of_one_node_count_at_both_ends(space, table) -> None:
    """The bridge forwards these; only br_netfilter shows them to the table."""
    send(space, A, B)
    assert counted(table) == {"out/pod/team-a": ALL, "in/pod/team-b": ALL}


def test_a_service_counts_as_the_pod_behind_it(space, table) -> None:
    send(space, A, SERVICE, replies=True)
    assert counted(table) == {
        "out/pod/team-a": ALL,
        "in/pod/team-b": ALL,
        "out/pod/team-b": ALL,
        "in/pod/team-a": ALL,
    }


def test_a_pod_that_reaches_itself_through_a_service_counts_in_both_directions(space, table) -> None:
    send(space, A, HAIRPIN)
    assert counted(table) == {"out/pod/team-a": ALL, "in/pod/team-a": ALL}


def test_what_a_pod_exchanges_with_its_own_host_counts(space, table) -> None:
    send(space, A, HOST, replies=True)
    assert counted(table) == {"out/site/team-a": ALL, "in/site/team-a": ALL}


def test_the_hosts_end_of_the_pods_network_is_in_the_class_of_pods(space, table) -> None:
    """The kubelet's probes come from there."""
    send(space, GATEWAY, A)
    assert counted(table) == {"in/pod/team-a": ALL}


def test_an_address_of_no_known_pod_is_nobodys(space, table) -> None:
    send(space, STRANGER, PEERS["site"], replies=True)
    assert counted(table) == {"out/site": ALL, "in/site": ALL}


def test_the_hosts_own_traffic_does_not_count(space, table) -> None:
    send(space, HOST, PEERS["site"], replies=True)
    assert counted(table) == {}


def test_a_broadcast_does_not_count_once_for_each_port(space, table) -> None:
    def sent() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            end.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(A))
            for address in ("10.200.1.255", "224.0.0.251"):
                end.sendto(b"x", (address, 5353))

    space.inside(A, sent)
    time.sleep(0.2)
    assert all(count.packets <= 2 for count in counted(table).values())
    assert not any(name.endswith("team-b") for name in counted(table))


def test_what_a_filter_drops_does_not_count(space, table) -> None:
    space.nft("table ip other { chain c { type filter hook forward priority 0; ip daddr 203.0.113.9 drop; }; }")
    try:
        with space.udp(A) as client:
            client.sendto(b"x" * SIZE, (PEERS["internet"], PORT))
            client.sendto(b"x" * SIZE, (PEERS["region"], PORT))
        time.sleep(0.2)
        assert [name for name in counted(table) if name.startswith("out")] == ["out/region/team-a"]
    finally:
        space.nft("delete table ip other")


def test_tcp_counts_what_was_sent_with_its_headers(space, table) -> None:
    """The kernel handles many segments as one packet; each packet has one header, so the rest is what was sent."""
    amount, got = 20_000_000, 0
    listener = space.inside(PEERS["internet"], lambda: socket.create_server((PEERS["internet"], PORT)))
    with listener, space.inside(A, lambda: socket.create_connection(listener.getsockname())) as client:
        server, _ = listener.accept()
        with server:
            client.setblocking(False)
            left = memoryview(bytes(amount))
            while got < amount:
                try:
                    left = left[client.send(left[:65536]) :] if left else left
                except BlockingIOError:
                    pass
                got += len(server.recv(1 << 20))
    time.sleep(0.2)
    count = table.counters()["out/internet/team-a"]
    assert abs(count.bytes - 52 * count.packets - amount) <= amount / 1000


@pytest.mark.parametrize(
    ("port", "kind"), [(3300, "ceph"), (6800, "ceph"), (7568, "ceph"), (7569, "site"), (6799, "site")]
)
def test_a_storage_host_is_of_the_class_ceph_at_cephs_ports_alone(space, table, port: int, kind: str) -> None:
    with (
        space.inside(STORAGE_HOST, lambda: socket.create_server((STORAGE_HOST, port))) as listener,
        space.inside(A, lambda: socket.create_connection((STORAGE_HOST, port))) as client,
    ):
        server, _ = listener.accept()
        with server:
            client.sendall(b"x" * SIZE)
            assert server.recv(SIZE)
    assert set(counted(table)) == {f"out/{kind}/team-a", f"in/{kind}/team-a"}


def test_other_protocols_than_tcp_are_of_the_class_site_there(space, table) -> None:
    with space.udp(STORAGE_HOST, 6800), space.udp(A) as client:
        client.sendto(b"x" * SIZE, (STORAGE_HOST, 6800))
    time.sleep(0.1)
    assert counted(table) == {"out/site/team-a": Count(PACKET, 1)}


def test_a_moved_address_counts_for_its_new_namespace_from_then_on(space, table) -> None:
    send(space, A, PEERS["site"])
    table.change([A], {})
    send(space, A, PEERS["site"])
    table.change([], {A: "team-c"})
    send(space, A, PEERS["site"])
    assert counted(table) == {"out/site/team-a": ALL, "out/site": ALL, "out/site/team-c": ALL}


def test_a_rebuilt_table_goes_on_with_its_counters(space, table) -> None:
    handle = table.handle()
    send(space, A, PEERS["site"])
    table.rebuild(PODS)
    send(space, A, PEERS["site"])
    assert (table.handle(), table.is_whole(table.live())) == (handle, True)
    assert counted(table) == {"out/site/team-a": Count(2 * TIMES * PACKET, 2 * TIMES)}


def test_confirming_addresses_all_the_time_loses_no_packet(space, table) -> None:
    many = {**PODS, **{f"10.200.1.{number}": f"team-{number % 7}" for number in range(120, 228)}}
    table.rebuild(many)
    with space.udp(PEERS["site"], PORT), space.udp(A) as client:
        for _ in range(200):
            for _ in range(20):
                client.sendto(b"x" * SIZE, (PEERS["site"], PORT))
            table.change(list(many), many)
    assert table.live().addresses["out-site"] == {each: f"out/site/{name}" for each, name in many.items()}
    assert counted(table) == {"out/site/team-a": Count(4000 * PACKET, 4000)}


def test_an_address_that_nobody_confirms_becomes_nobodys(space, monkeypatch) -> None:
    monkeypatch.setattr(layout, "ADDRESS_LIFE_S", 1)
    table = space.inside(HOST, lambda: Table(PLAN))
    table.rebuild(PODS)
    try:
        send(space, A, PEERS["site"])
        time.sleep(1.5)
        send(space, A, PEERS["site"])
        assert counted(table) == {"out/site/team-a": ALL, "out/site": ALL}
        assert table.live().addresses["out-site"] == {}
    finally:
        table.remove()
        table.close()


def test_what_is_missing_shows(space, table) -> None:
    name = ("ip", layout.TABLE)
    space.rules("flush", "table", *name)
    assert (table.is_whole(table.live()), table.live().handle) == (False, table.handle())
    table.rebuild(PODS)
    space.rules("flush", "map", *name, "in-pod")
    assert table.live().addresses["in-pod"] == {}
    assert table.live().addresses["in-site"] == {A: "in/site/team-a", B: "in/site/team-b"}
    before = table.generation()
    space.rules("delete", "table", *name)
    assert table.generation() != before
    assert (table.live(), table.counters()) == ((0, {}, {}), {})


def test_a_change_that_the_kernel_refuses_changes_nothing_and_says_what(space, table) -> None:
    with pytest.raises(FileNotFoundError, match="addresses of out-pod"):
        table.change(["10.200.1.77"], {"10.200.1.78": "team-z"})
    assert table.live().addresses["out-pod"] == {A: "out/pod/team-a", B: "out/pod/team-b"}
    with pytest.raises(OSError, match="counter out/pod/team-a"):
        table.forget(["out/pod/team-a"])


def test_a_namespace_that_left_is_forgotten(space, table) -> None:
    table.change([B], {})
    table.forget([name for name in table.counters() if name.endswith("/team-b")])
    assert not any(name.endswith("/team-b") for name in table.counters())


def test_nft_shows_the_table_and_takes_it_back(space, table) -> None:
    text = space.rules("list", "table", "ip", layout.TABLE)
    assert 'iifname "cni0" jump out-any' in text
    assert "ip daddr vmap @out-peers" in text
    assert f"{A} expires" in text
    space.nft(f"table ip {layout.TABLE}; delete table ip {layout.TABLE};\n{text}")
    send(space, A, PEERS["ceph"])
    assert counted(table)["out/ceph/team-a"] == ALL


def test_a_hundred_and_ten_pods_fit_into_one_transaction(space, table) -> None:
    many = {f"10.200.{number // 250}.{number % 250 + 1}": f"team-{number}" for number in range(110)}
    table.rebuild(many)
    assert len(table.counters()) == 2 * 5 * (110 + len(set(PODS.values())) + 1)
    assert table.is_whole(table.live())


def test_ports_of_tcp_and_udp_do_not_matter(space, table) -> None:
    """ICMP and anything else that is IPv4 counts like TCP and UDP."""

    def ping() -> None:
        head = struct.pack(">BBHHH", 8, 0, 0, 7, 1)
        total = sum(struct.unpack(">4H", head))
        head = struct.pack(">BBHHH", 8, 0, 0xFFFF ^ (total & 0xFFFF) + (total >> 16), 7, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as end:
            end.settimeout(5)
            end.sendto(head, (PEERS["region"], 0))
            end.recv(100)

    space.inside(A, ping)
    assert counted(table) == {"out/region/team-a": Count(28, 1), "in/region/team-a": Count(28, 1)}
