"""A node in a network namespace with pods behind its bridge, and everybody else behind its network card. All real, no cluster.

The node forwards and masquerades as flannel has it, and translates a Service as kube-proxy does.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_CLONE_NEWNET = 0x40000000
_made = itertools.count()

CLASSES = {
    "pod": ["10.200.0.0/16"],
    "ceph": ["10.79.0.0/24"],
    "region": ["10.77.0.0/16"],
    "site": ["10.78.1.0/24"],
    "storage": ["10.78.2.0/24"],
}
STORAGE_HOST = "10.78.2.9"
PEERS = {
    "pod": "10.200.9.9",
    "ceph": "10.79.0.9",
    "region": "10.77.0.9",
    "site": "10.78.1.12",
    "internet": "203.0.113.9",
}
"""Class -> an address of it, all behind the node's network card."""
HOST, GATEWAY = "10.78.1.11", "10.200.1.1"
SERVICE, HAIRPIN = "10.201.0.10", "10.201.0.11"
SERVICE_POD, OWN_POD = "10.200.1.6", "10.200.1.5"
"""The pods behind the two Services; the second one calls itself."""
_RULES = f"""
table ip nat {{
    chain pre {{
        type nat hook prerouting priority dstnat;
        ip daddr {SERVICE} dnat to {SERVICE_POD}
        ip daddr {HAIRPIN} dnat to {OWN_POD}
    }}
    chain post {{
        type nat hook postrouting priority srcnat;
        ip saddr 10.200.1.0/24 ip daddr != 10.200.0.0/16 masquerade
        ip saddr {OWN_POD} ip daddr {OWN_POD} masquerade
    }}
}}
"""
_SYSCTLS = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.bridge.bridge-nf-call-iptables=1")


class Space:
    """A node, its pods and the others. Names of namespaces begin with `name`."""

    def __init__(self) -> None:
        self.name = f"mgtr{os.getpid()}n{next(_made)}"
        self._pods: dict[str, str] = {}
        self._others = f"{self.name}-o"
        for name in (self.name, self._others):
            run("ip", "netns", "add", name)
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "cni0", "type", "bridge")
        self.ip("address", "add", f"{GATEWAY}/24", "dev", "cni0")
        self.ip("link", "set", "cni0", "up")
        self.ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self._others)
        self.ip("address", "add", f"{HOST}/24", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")
        for address in (*PEERS.values(), STORAGE_HOST):
            run("ip", "-n", self._others, "address", "add", f"{address}/32", "dev", "eth0")
        for link in ("lo", "eth0"):
            run("ip", "-n", self._others, "link", "set", link, "up")
        run("ip", "-n", self._others, "route", "add", HOST, "dev", "eth0")
        run("ip", "-n", self._others, "route", "add", "10.200.1.0/24", "via", HOST, "dev", "eth0")
        self.ip("route", "add", "default", "via", PEERS["site"])
        for each in _SYSCTLS:
            run("ip", "netns", "exec", self.name, "sysctl", "-qw", each)
        self.nft(_RULES)

    def close(self) -> None:
        for name in (*self._pods.values(), self._others, self.name):
            subprocess.run(["ip", "netns", "del", name], check=False)

    def ip(self, *words: str) -> str:
        return run("ip", "-n", self.name, *words)

    def nft(self, text: str) -> str:
        return run("ip", "netns", "exec", self.name, "nft", "-f", "-", text=text)

    def rules(self, *words: str) -> str:
        return run("ip", "netns", "exec", self.name, "nft", *words)

    def pod(self, address: str) -> None:
        """Plug a pod into the bridge, as the plugin bridge does with hairpinMode. It replaces one with this address."""
        self.unplug(address)
        number = address.rpartition(".")[2]
        name = self._pods[address] = f"{self.name}-{number}"
        run("ip", "netns", "add", name)
        self.ip("link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        self.ip("link", "set", f"veth{number}", "master", "cni0", "up")
        self.ip("link", "set", f"veth{number}", "type", "bridge_slave", "hairpin", "on")
        run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            run("ip", "-n", name, "link", "set", link, "up")
        run("ip", "-n", name, "route", "add", "default", "via", GATEWAY)

    def unplug(self, address: str) -> None:
        if name := self._pods.pop(address, ""):
            run("ip", "netns", "del", name)
            subprocess.run(["ip", "-n", self.name, "link", "del", f"veth{address.rpartition('.')[2]}"], check=False)
            self.ip("neigh", "flush", "dev", "cni0")

    def inside(self, address: str, act: Callable[[], _T]) -> _T:
        """Call a function where an address is: in a pod, on the node, or with the others. Sockets of it stay there."""
        return within(self._space_of(address), act)

    def command(self, *words: str, at: str = HOST) -> list[str]:
        return ["ip", "netns", "exec", self._space_of(at), *words]

    def _space_of(self, address: str) -> str:
        if address in (HOST, GATEWAY):
            return self.name
        return self._pods.get(address, self._others)

    def udp(self, address: str, port: int = 0) -> socket.socket:
        """Return a socket of an address."""

        def made() -> socket.socket:
            end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            end.bind((address, port))
            end.settimeout(10)
            return end

        return self.inside(address, made)


def within(space: str, act: Callable[[], _T]) -> _T:
    """Call a function in a network namespace, in a thread of its own."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            with open(f"/run/netns/{space}") as handle:
                if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            results.append(act())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def run(*words: str, text: str | None = None) -> str:
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


@contextmanager
def agent(space: Space, settings: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the program on the node, with an API that is a file: `tests.traffic.program`."""
    command = space.command(sys.executable, "-u", str(Path(__file__).with_name("program.py")), str(settings))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
