"""How long packets may be, on real networks: hosts, routers and switches are network namespaces."""

from __future__ import annotations

import itertools
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from menagerie_links import ways

FILES = Path(ways.__file__).parents[1]
ASK = f"import sys, json; sys.path.insert(0, {str(FILES)!r}); import menagerie_links.ways as w; SETUP; print(json.dumps(w.CALL))"
# Serves TLS with its own certificate repeatedly; exits when its standard input closes.
SERVER = """
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
context.set_alpn_protocols(["h2"])
listener = socket.create_server(("", 6443), backlog=64)
def serve(end):
    try:
        end.settimeout(5)
        context.wrap_socket(end, server_side=True).close()
    except OSError:
        pass
def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
"""


class Net:
    """Namespaces with wires between them, all removed at the end."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.tag = f"mgl{os.getpid()}"

    def ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def space(self, name: str) -> None:
        self.ip("netns", "add", f"{self.tag}-{name}")
        self.stack.callback(subprocess.run, ["ip", "netns", "del", f"{self.tag}-{name}"], check=False)
        self.ip("-n", f"{self.tag}-{name}", "link", "set", "lo", "up")

    def wire(self, near_name: str, far_name: str, mtu: int, far_mtu: int | None = None) -> None:
        """Create a veth pair. Each end is named after the namespace that it leads to."""
        near, far = f"{self.tag}-{near_name}", f"{self.tag}-{far_name}"
        self.ip(
            "-n",
            near,
            "link",
            "add",
            far_name,
            "mtu",
            str(mtu),
            "type",
            "veth",
            "peer",
            "name",
            near_name,
            "netns",
            far,
        )
        self.ip("-n", far, "link", "set", near_name, "mtu", str(far_mtu or mtu), "up")
        self.ip("-n", near, "link", "set", far_name, "up")

    def address(self, space: str, device: str, address: str) -> None:
        self.ip("-n", f"{self.tag}-{space}", "address", "add", address, "dev", device)

    def route(self, space: str, via: str) -> None:
        self.ip("-n", f"{self.tag}-{space}", "route", "add", "default", "via", via)

    def run(self, space: str, *words: str) -> str:
        command = ["ip", "netns", "exec", f"{self.tag}-{space}", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, call: str) -> list[Any]:
        """Call menagerie_links.ways on the host with shorter time-outs: these networks answer within a millisecond."""
        program = ASK.replace("CALL", call).replace("SETUP", "w.SHORTEST_S, w.TLS_PATIENCE_S = 0.05, 0.3")
        return list(json.loads(self.run("host", sys.executable, "-c", program)))

    def serve(self, space: str, certificate: Path) -> None:
        command = ["ip", "netns", "exec", f"{self.tag}-{space}", sys.executable, "-c", SERVER, str(certificate)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"


@pytest.fixture
def net() -> Iterator[Net]:
    if os.geteuid() != 0:
        pytest.skip("only root may make networks")
    with ExitStack() as stack:
        yield Net(stack)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=api -keyout"
    subprocess.run([*command.split(), f"{path}.key", "-out", str(path)], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.key").read_text())
    return path


@pytest.fixture
def routed(net: Net) -> Callable[[int], Net]:
    """Return a function that builds a host with MTU 9000, a router, and behind it a link with the given MTU."""

    def made(mtu: int) -> Net:
        for name in ("host", "router", "far"):
            net.space(name)
        net.wire("host", "router", 9000)
        net.wire("router", "far", mtu)
        net.address("host", "router", "198.18.0.2/24")
        net.address("router", "host", "198.18.0.1/24")
        net.address("router", "far", "198.18.1.1/24")
        net.address("far", "router", "198.18.1.2/24")
        net.route("host", "198.18.0.1")
        net.route("far", "198.18.1.1")
        net.run("router", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        return net

    return made


@pytest.fixture
def switched(net: Net) -> Callable[[int], Net]:
    """Return a function that builds a host with MTU 9000 on a switch whose other cable silently drops above the given MTU."""

    def made(mtu: int) -> Net:
        for name in ("host", "switch", "far"):
            net.space(name)
        net.wire("host", "switch", 9000)
        net.wire("switch", "far", 9000, mtu)
        net.address("host", "switch", "198.18.0.2/24")
        net.address("far", "switch", "198.18.0.3/24")
        for command in ("link add br0 mtu 9000 type bridge", "link set host master br0", "link set far master br0"):
            net.ip("-n", f"{net.tag}-switch", *command.split())
        net.ip("-n", f"{net.tag}-switch", "link", "set", "br0", "up")
        return net

    return made


def test_a_router_before_a_narrow_link_is_named(routed) -> None:
    net = routed(1400)
    assert net.ask("by_pings('198.18.1.2', 9000)") == [1400, "198.18.0.1 says so", False]
    assert net.ask("by_pings('198.18.1.2', 1400)") == [1400, "", False]
    assert net.ask("by_pings('198.18.0.1', 9000)") == [9000, "", False]
    # The kernel has now cached 1400. Each probe must test the real path, not use that cache.
    net.ip("-n", f"{net.tag}-router", "link", "set", "far", "mtu", "9000")
    net.ip("-n", f"{net.tag}-far", "link", "set", "router", "mtu", "9000")
    assert net.ask("by_pings('198.18.1.2', 9000)") == [9000, "", False]


def test_a_link_that_drops_silently_is_measured_to_the_byte(switched) -> None:
    # veth accepts 4 bytes more than its MTU, room for a VLAN tag (is_skb_forwardable in net/core/dev.c).
    assert switched(1496).ask("by_pings('198.18.0.3', 9000)") == [1500, "", False]


def test_the_hosts_own_port_is_named_if_it_is_the_narrow_one(switched) -> None:
    net = switched(9000)
    net.ip("-n", f"{net.tag}-host", "link", "set", "switch", "mtu", "2000")
    assert net.ask("by_pings('198.18.0.3', 9000)") == [2000, "this host's own port", False]


def test_a_target_that_does_not_answer_is_no_narrow_path(switched) -> None:
    net = switched(9000)
    assert net.ask("by_pings('198.18.0.9', 9000)") == [0, "", False]
    assert net.ask("by_pings('203.0.113.1', 9000)") == [0, "", False]
    assert net.ask("by_tls('198.18.0.3', 6443, 9000)") == [0, "", False]


def test_the_api_is_probed_by_tls_because_it_answers_no_pings(routed, certificate: Path) -> None:
    net = routed(9000)
    net.serve("far", certificate)
    net.run("far", "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1")
    assert net.ask("by_pings('198.18.1.2', 9000)") == [0, "", False]
    assert net.ask("by_tls('198.18.1.2', 6443, 9000)") == [9000, "", False]
    assert net.ask("by_tls('198.18.1.2', 6443, 1446)") == [1446, "", False]


def test_a_narrow_link_before_the_api_is_distinguished_from_a_shorter_mss(routed, certificate: Path) -> None:
    net = routed(9000)
    net.serve("far", certificate)
    net.ip("-n", f"{net.tag}-router", "link", "set", "far", "mtu", "1438")
    by = "a router on the way, or this host's own port, says so"
    assert net.ask("by_tls('198.18.1.2', 6443, 1446)") == [1438, by, False]
    net.ip("-n", f"{net.tag}-far", "link", "set", "router", "mtu", "1400")
    net.ip("-n", f"{net.tag}-router", "link", "set", "far", "mtu", "1400")
    net.ip("-n", f"{net.tag}-host", "route", "flush", "cache")
    assert net.ask("by_tls('198.18.1.2', 6443, 1446)") == [1400, "", True]


def test_a_path_to_the_api_that_swallows_long_packets_is_measured(switched, certificate: Path) -> None:
    net = switched(9000)
    net.serve("far", certificate)
    # The server's side announces 8960 to TCP, but receives at most 1500.
    net.ip("-n", f"{net.tag}-switch", "link", "set", "far", "mtu", "1500")
    # A real port segments TCP's packets before the cable; veth would pass them on whole, without a packet length.
    net.ip("-n", f"{net.tag}-host", "link", "set", "switch", "gso_max_segs", "1")
    answer = net.ask("by_tls('198.18.0.3', 6443, 9000)")
    assert answer[1:] == ["", False]
    assert 1500 <= answer[0] <= 1504


@pytest.mark.parametrize("late", range(2, 18))
def test_a_handshake_that_is_late_once_does_not_shorten_the_path(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    calls = itertools.count()

    def handshake(_address: str, _port: int, most: int = 0) -> tuple[bool, int, int]:
        arrives = next(calls) != late and 0 < most <= 1500
        return arrives, 9000, 9000

    monkeypatch.setattr(ways, "_handshake", handshake)
    assert ways.by_tls("192.0.2.1", 6443, 9000) == (1500, "", False)


@pytest.mark.parametrize("late", [1, 2])
def test_a_path_whose_first_handshakes_are_late_is_as_long_as_wanted(
    monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    def path(size: int) -> None:
        answers = itertools.chain([False] * late, itertools.repeat(True))
        monkeypatch.setattr(ways, "_handshake", lambda *_sizes: (next(answers), size, size))

    path(8960)
    assert ways.by_tls("192.0.2.1", 6443, 8960) == (8960, "", False)
    path(9000)
    assert ways.by_tls("192.0.2.1", 6443, 8960) == (8960, "", False)


def test_python_accepts_the_long_list_of_protocols() -> None:
    context = ways._context(9000)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="api").do_handshake()
    assert len(outgoing.read()) > 9000


@pytest.mark.parametrize(
    ("result", "wrong", "note"),
    [
        ((9000,), "", ""),
        ((0,), "", "gpu-2 in the same rack (10.8.0.12) doesn't answer: not tested"),
        (
            (1500, "10.8.0.1 says so"),
            (
                "packets of 9000 bytes don't reach gpu-2 in the same rack (10.8.0.12) whole; 1500 is the most that does "
                "(10.8.0.1 says so); sites.sjc1.link_mtu says 9000"
            ),
            "",
        ),
        (
            (1400, "", True),
            "",
            (
                "to gpu-2 in the same rack: the other end or a router limits TCP to packets of 1400 (MSS); longer ones "
                "aren't tested"
            ),
        ),
    ],
)
def test_a_measurement_is_reported_with_the_setting_that_it_contradicts(result, wrong: str, note: str) -> None:
    path = {"to": "gpu-2 in the same rack", "address": "10.8.0.12", "mtu": 9000, "setting": "sites.sjc1.link_mtu"}
    assert ways.verdict(path, ways.PathResult(*result)) == (wrong, note)
