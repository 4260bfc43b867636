"""Ports for programs that are started later and can't be handed a socket.

Not those that the kernel gives: between asking for one and the program's start it may become the near end of somebody's connection, of
which a busy machine has thousands. From below that range (net.ipv4.ip_local_port_range) it takes none by itself.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

_FIRST = 10_000
_CHOSEN = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Of 127.0.0.1, so many different ones that nobody listens at."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    with ExitStack() as sockets:
        while len(found) < count:
            port = _CHOSEN.randrange(_FIRST, low)
            try:
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
