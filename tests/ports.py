"""Ports, and ranges of addresses, for programs that are started later and can't be handed a socket.

Not those that the kernel gives: between asking for one and the program's start it may become the near end of somebody's connection, of
which a busy machine has thousands. From below that range (net.ipv4.ip_local_port_range) it takes none by itself. Nor one that was given before,
here or by another worker of this run: whoever has it may not listen yet.
"""

from __future__ import annotations

import os
import random
import socket
from contextlib import ExitStack
from pathlib import Path

_FIRST = 10_000
_left: list[int] = []
_claims: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Of 127.0.0.1, so many different ones that nobody listens at."""
    found: list[int] = []
    with ExitStack() as sockets:
        while len(found) < count:
            if not _left:
                _left.extend(_of_this_worker())
            port = _left.pop()
            try:
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


def own_network() -> str:
    """A /24 of this machine's own addresses that no other test has, nor one of another process.

    The claim is a name in the kernel's abstract namespace (unix(7)), which goes with this process, however it ends.
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
    """In no order, so that two runs on one machine are seldom at the same."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = list(range(_FIRST + worker, low, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
    random.SystemRandom().shuffle(ports)
    return ports
