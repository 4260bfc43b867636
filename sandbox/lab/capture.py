"""Count the packets on a cable: ``python -m sandbox.lab.capture INTERFACE PODS VXLAN_PORT``.

Run it in the network namespace of the interface. It prints "ready", counts until its standard input closes, then
prints one JSON object {"encapsulated": n, "plain": n}. Plain packets go from one pod's address to another's without
encapsulation.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Network
from itertools import islice

_ETH_P_ALL = 0x0003
_ETHERNET_BYTES = 14
_IPV4 = b"\x08\x00"
_UDP = 17
_SO_RCVBUFFORCE = 33
"""asm-generic/socket.h; the module has no name for it."""
_BUFFER_BYTES = 16 << 20
"""For tens of thousands of frames; the default holds about 250."""
_MOST_AT_ONCE = 100_000
"""Frames between two looks at the input, more than the buffer holds."""


def kind(frame: bytes, pods: IPv4Network, vxlan_port: int) -> str | None:
    """Return "encapsulated", "plain", or None for any other frame."""
    packet = frame[_ETHERNET_BYTES:]
    if frame[12:14] != _IPV4 or len(packet) < 20:
        return None
    header = (packet[0] & 0x0F) * 4
    if packet[9] == _UDP and int.from_bytes(packet[header + 2 : header + 4], "big") == vxlan_port:
        return "encapsulated"
    mask, network = int(pods.netmask), int(pods.network_address)
    ends = (int.from_bytes(packet[12:16], "big"), int.from_bytes(packet[16:20], "big"))
    return "plain" if all(end & mask == network for end in ends) else None


def count(interface: str, pods: IPv4Network, vxlan_port: int) -> dict[str, int]:
    """Count packets by kind until standard input closes."""
    counts = {"encapsulated": 0, "plain": 0}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as tap:
        tap.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        tap.bind((interface, 0))
        tap.setblocking(False)
        selector = selectors.DefaultSelector()
        selector.register(tap, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        over = False
        while not over:
            over = any(key.fileobj is sys.stdin for key, _ in selector.select())
            # On a busy machine, frames are still in the buffer when the input closes.
            for frame in islice(_waiting(tap), _MOST_AT_ONCE):
                if packet := kind(frame, pods, vxlan_port):
                    counts[packet] += 1
    return counts


def _waiting(tap: socket.socket) -> Iterator[bytes]:
    """Yield the frames that have arrived."""
    with suppress(BlockingIOError):
        while True:
            yield tap.recv(65535)


if __name__ == "__main__":
    print(json.dumps(count(sys.argv[1], IPv4Network(sys.argv[2]), int(sys.argv[3]))))
