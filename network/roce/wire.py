"""The theoretical speed of RDMA over Ethernet, from the overhead of packets. Sizes are in bytes.

InfiniBand Architecture Specification, annex A17 (RoCE v2), and IEEE 802.3: each packet of an RDMA write over IPv4 is

    preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, data, ICRC 4, FCS 4, gap to the next packet 12

and the first packet of a message also has a RETH of 16. With 4096 of data and messages of 64 KiB, that leaves 98.01 % of the
line. "To Spray or Not to Spray" (Juniper, 2023) measured 98.01 Gbit/s of 100 on ConnectX-6 Dx, and 97.66 with adaptive
routing, where every packet has a RETH.
"""

from __future__ import annotations

from math import ceil

PACKET = 8 + 14 + 20 + 8 + 12 + 4 + 4 + 12
"""Overhead of each packet."""
RETH = 16
MARK = 0.97
"""Share of the line that a good pair reaches at RoCE MTU 4096 and messages of `MESSAGE`, as observed on hundreds of hosts."""
MESSAGE = 65536
"""perftest's default message size."""


def limit(mtu: int, message: int = MESSAGE) -> float:
    """Return the share of the line that carries data if there is no other traffic."""
    return message / (message + ceil(message / mtu) * PACKET + RETH)


def mark(mtu: int, message: int = MESSAGE) -> float:
    """Return the share of the line below which a pair is slow: `MARK`, scaled with the limit."""
    return MARK * limit(mtu, message) / limit(4096, MESSAGE)
