"""How fast RDMA over Ethernet can be: arithmetic on what a packet carries besides data. Sizes in bytes.

InfiniBand Architecture Specification, annex A17 (RoCE v2), and IEEE 802.3: each packet of an RDMA write over IPv4 is

    preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, data, ICRC 4, FCS 4, gap to the next packet 12

and the first of a message has a RETH of 16 besides. With 4096 of data and messages of 64 KiB that leaves 98.01 % of the
line; "To Spray or Not to Spray" (Juniper, 2023) measured 98.01 Gbit/s of 100 on ConnectX-6 Dx, and 97.66 with adaptive
routing, where every packet has a RETH.
"""

from __future__ import annotations

from math import ceil

PACKET = 8 + 14 + 20 + 8 + 12 + 4 + 4 + 12
"""What each packet has besides data."""
RETH = 16
MARK = 0.97
"""Share of the line that a good pair reaches at RoCE MTU 4096 and messages of `MESSAGE`: what was seen on hundreds of hosts."""
MESSAGE = 65536
"""perftest's default size of a message."""


def limit(mtu: int, message: int = MESSAGE) -> float:
    """Share of the line that is data, when nothing else is on it."""
    return message / (message + ceil(message / mtu) * PACKET + RETH)


def mark(mtu: int, message: int = MESSAGE) -> float:
    """Share of the line below which a pair is slow: `MARK`, moved with the limit."""
    return MARK * limit(mtu, message) / limit(4096, MESSAGE)
