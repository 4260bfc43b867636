"""Ports and address ranges for programs that start later and can't be handed a socket.

The ports are not ephemeral: before the program starts, the kernel might use such a port for the local end of a connection,
and a busy machine has thousands. The kernel uses no port below that range (net.ipv4.ip_local_port_range) automatically. A port
is also never returned twice, here or by another worker of this run, because its first user may not listen yet.
"""

from __future__ import annotations

import os
import random
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

_FIRST = 10_000
_LOOPBACK = re.compile(r"(https?://127\.0\.0\.1:)([0-9]+)")
_left: list[int] = []
_claims: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Return `count` different ports of 127.0.0.1 on which nothing listens."""
    ports: list[int] = []
    with ExitStack() as sockets:
        while len(ports) < count:
            if not _left:
                _left.extend(_of_this_worker())
            port = _left.pop()
            try:
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            ports.append(port)
    return ports


def free_port() -> int:
    """Return one free port."""
    return free_ports(1)[0]


def at_ports(words: Iterable[str], ports: Mapping[int, int]) -> list[str]:
    """Return the words with other ports in their URLs of 127.0.0.1. ports: old -> new.

    It replaces all at once and whole numbers only: a free port may begin with the digits of another one's old port.
    """

    def move(url: re.Match[str]) -> str:
        return f"{url[1]}{ports.get(int(url[2]), url[2])}"

    return [_LOOPBACK.sub(move, word) for word in words]


def own_network() -> str:
    """Return a /24 of loopback addresses that no other test or process uses.

    The claim is a name in the kernel's abstract namespace (unix(7)). It disappears with this process, however that ends.
    """
    while True:
        network = f"127.{random.SystemRandom().randrange(10, 250)}.{random.SystemRandom().randrange(256)}.0/24"
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0menagerie tests {network}")
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return network


def _of_this_worker() -> list[int]:
    """Return this worker's ports in random order, so that two runs on one machine rarely pick the same."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = list(range(_FIRST + worker, low, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
    random.SystemRandom().shuffle(ports)
    return ports
