"""A real dnsmasq with the rendered configuration; requests come through a rack's relay, as from a UEFI machine and its iPXE."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

import pytest

from operations.provisioning.machines import SiteMachine, machines
from operations.provisioning.render import tree, write
from tests.provisioning.support import cluster
from tests.waiting import until

SERVER = "10.9.255.5"
UEFI_X64 = 7  # RFC 4578, as in firmware; IANA's registry has 7, too
COOKIE = b"\x63\x82\x53\x63"
ALL = machines(cluster())
T = TypeVar("T")

pytestmark = [
    pytest.mark.skipif(shutil.which("dnsmasq") is None, reason="dnsmasq is not installed (Debian: dnsmasq-base)"),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and ip"),
]


def inside(namespace: str, call: Callable[[], T]) -> T:
    """Run it in a thread in a network namespace; its sockets stay there (setns(2))."""
    results: list[T] = []

    def run() -> None:
        with open(f"/run/netns/{namespace}") as file:
            assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0) == 0
        results.append(call())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


@dataclass(frozen=True)
class Net:
    """Namespaces of a server and of the racks' router, which relays."""

    server: str
    router: str


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    made = Net(f"menagerie-pxe-s{os.getpid()}", f"menagerie-pxe-r{os.getpid()}")
    folder = tmp_path_factory.mktemp("pxe")
    write(tree(ALL), folder / "menagerie")
    (folder / "tftp").mkdir()
    (folder / "tftp" / "ipxe.efi").write_bytes(b"iPXE for UEFI" * 100)
    commands = f"""
        netns add {made.server}
        netns add {made.router}
        -n {made.server} link add site type veth peer name racks netns {made.router}
        -n {made.server} link set site up
        -n {made.server} link set lo up
        -n {made.router} link set racks up
        -n {made.router} link set lo up
        -n {made.server} addr add {SERVER}/24 dev site
        -n {made.router} addr add 10.9.255.1/24 dev racks
        -n {made.router} addr add 10.9.1.1/24 dev lo
        -n {made.router} addr add 10.9.2.1/24 dev lo
        -n {made.server} route add 10.9.0.0/16 via 10.9.255.1
    """
    command = ["ip", "netns", "exec", made.server, "dnsmasq", "--keep-in-foreground", "--port=0", "--user=root"]
    command += [f"--conf-file={folder}/menagerie/dnsmasq.conf", "--enable-tftp", f"--tftp-root={folder}/tftp"]
    command += ["--leasefile-ro", "--pid-file=", "--log-dhcp", f"--log-facility={folder}/log"]
    process = web = None
    try:
        for line in commands.strip().splitlines():
            subprocess.run(["ip", *line.split()], check=True)
        process = subprocess.Popen(command)
        handler = partial(Quiet, directory=str(folder))
        web = inside(made.server, lambda: ThreadingHTTPServer((SERVER, 80), handler))
        threading.Thread(target=web.serve_forever, daemon=True).start()
        log = folder / "log"
        until(lambda: log.exists() and "DHCP" in log.read_text(), "dnsmasq did not begin", 10, 0.05)
        yield made
    finally:
        if web:
            web.shutdown()
            web.server_close()
        if process:
            process.terminate()
            process.wait()
        for name in (made.server, made.router):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@dataclass(frozen=True)
class Offer:
    address: str
    server: str
    file: str
    router: str


def ask(
    net: Net, mac: str, relay: str, *, arch: int = UEFI_X64, ipxe: bool = False, patience: float = 5
) -> Offer | None:
    """DHCPDISCOVER of a machine, forwarded by the relay at `relay` (RFC 2131, 4578). Return the response, None if there is none."""
    options = {
        53: b"\x01",
        55: bytes([1, 3, 6, 66, 67]),
        60: f"PXEClient:Arch:{arch:05}:UNDI:003016".encode(),
        93: struct.pack("!H", arch),
        94: b"\x01\x03\x10",
        97: b"\x00" + bytes(16),
        **({77: b"iPXE"} if ipxe else {}),
    }
    xid = random.getrandbits(32)
    hardware = bytes.fromhex(mac.replace(":", ""))
    packet = struct.pack("!BBBBIHH", 1, 1, 6, 1, xid, 0, 0) + bytes(12) + socket.inet_aton(relay)
    packet += hardware.ljust(16, b"\0") + bytes(192) + COOKIE
    packet += b"".join(bytes([code, len(value)]) + value for code, value in options.items()) + b"\xff"

    def exchange() -> Offer | None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind((relay, 67))
            udp.settimeout(patience)
            udp.sendto(packet, (SERVER, 67))
            try:
                return _parse(udp.recv(2048), xid)
            except TimeoutError:
                return None

    return inside(net.router, exchange)


def _parse(data: bytes, xid: int) -> Offer:
    assert data[0] == 2
    assert struct.unpack("!I", data[4:8])[0] == xid
    options, rest = {}, data[240:]
    while rest and rest[0] != 255:
        code, length = rest[0], rest[1]
        options[code], rest = rest[2 : 2 + length], rest[2 + length :]
    assert options[53] == b"\x02"  # DHCPOFFER
    name = options.get(67, data[108:236]).rstrip(b"\0").decode()
    address, server = (socket.inet_ntoa(data[at : at + 4]) for at in (16, 20))
    return Offer(address, server, name, socket.inet_ntoa(options[3]))


def tftp(server: str, name: str) -> bytes:
    """Read a file by TFTP (RFC 1350)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(5)
        udp.sendto(b"\0\x01" + name.encode() + b"\0octet\0", (server, 69))
        content = b""
        while True:
            data, sender = udp.recvfrom(600)
            assert data[:2] == b"\0\x03", data
            content += data[4:]
            udp.sendto(b"\0\x04" + data[2:4], sender)
            if len(data) < 516:
                return content


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as response:
        return str(response.read().decode())


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_machine_gets_ipxe_then_its_own_script_and_then_its_own_answers(net: Net, one: SiteMachine) -> None:
    first = ask(net, one.mac, str(one.router))
    assert first == Offer(str(one.address), SERVER, "ipxe.efi", str(one.router))
    assert inside(net.router, lambda: tftp(first.server, first.file)).startswith(b"iPXE for UEFI")

    second = ask(net, one.mac, str(one.router), ipxe=True)
    assert second is not None
    assert (second.address, second.file) == (str(one.address), "http://10.9.255.5/menagerie/boot.ipxe")
    boot = inside(net.router, lambda: fetch(second.file))
    own = re.findall(r"chain --replace (\S+) ", boot)[0].replace("${mac:hexhyp}", one.hyphened)
    script = inside(net.router, lambda: fetch(own))
    urls = dict(re.findall(r"^initrd (http\S+) /(\S+)$", script, re.MULTILINE))
    given = {name: inside(net.router, partial(fetch, url)) for url, name in urls.items()}
    answers = given.pop("preseed.cfg")
    assert f"d-i netcfg/get_hostname string {one.name}\n" in answers
    assert set(re.findall(r"sh /(\S+\.sh)", answers)) == set(given) == {"disk.sh", "late.sh"}
    assert all(text.startswith("#!/bin/sh") for text in given.values())


def test_a_machine_with_a_bios_gets_the_other_ipxe(net: Net) -> None:
    offer = ask(net, ALL[0].mac, str(ALL[0].router), arch=0)
    assert offer is not None
    assert offer.file == "undionly.kpxe"


def test_an_unlisted_machine_gets_no_response(net: Net) -> None:
    assert ask(net, "b8:59:9f:77:77:77", "10.9.1.1", patience=2) is None


def test_a_machine_in_the_wrong_rack_gets_no_response(net: Net) -> None:
    assert ask(net, ALL[0].mac, "10.9.2.1", patience=2) is None
