"""Loopback ports for a temporary etcd."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_FIRST = 10000
_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def unused(count: int) -> tuple[int, ...]:
    """Return free ports below the range that the kernel uses for connections. OSError if too few are free."""
    below = max(int(_OF_CONNECTIONS.read_text().split()[0]), 2 * _FIRST)
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(_FIRST, below), below - _FIRST):
        if _free(port):
            ports.append(port)
        if len(ports) == count:
            return tuple(ports)
    raise OSError(f"no {count} ports of 127.0.0.1 from {_FIRST} to {below} are free")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
