"""The model of RDMA over Ethernet (RoCE v2): one fabric per site, and its rails.

A rail is the network that joins the n-th port of every machine. Hosts and switches must agree on every number
here; `network.roce.switches` renders the switches' side, `network.roce.host` the hosts'.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from cluster.model import Model
from cluster.quantities import Name, refuse

HEADROOM = 96
"""Bytes that Linux takes off a link's MTU before it chooses the RoCE MTU: GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28,
ICRC 4 (iboe_get_mtu in include/rdma/ib_addr.h)."""

ECT_0 = 0b10
"""RFC 3168: the sender supports ECN. Without it, switches drop packets instead of marking them."""

MTUS = (256, 512, 1024, 2048, 4096)
"""Path MTUs of InfiniBand, and therefore of RoCE."""


def parse_pci_address(value: Any) -> Any:
    """Validate a PCI address such as ``"0000:1a:00.0"``: domain, bus, device and function, as in sysfs."""
    if isinstance(value, str) and not re.fullmatch(_PCI, value):
        hint = 'write domain:bus:device.function in lower case, as in `lspci -D`, for example "0000:1a:00.0"'
        raise refuse("ROC-005", f"{value} isn't a PCI address", hint)
    return value


def parse_interface(value: Any) -> Any:
    """Validate the name of a network interface, such as ens1f0np0."""
    if isinstance(value, str) and not re.fullmatch(_INTERFACE, value):
        hint = "write a name from `ip link`, for example ens1f0np0: at most 15 letters, digits and _.-, not starting with . or -"
        raise refuse("ROC-005", f"{value!r} isn't a valid name of a network interface", hint)
    return value


def parse_mtu(value: Any) -> Any:
    """Validate one of `MTUS`."""
    if isinstance(value, int) and value not in MTUS:
        raise refuse("CFG-015", f"{value} isn't one of {', '.join(map(str, MTUS))}", "write 4096")
    return value


_PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
# Linux, dev_valid_name: at most 15 bytes, no "/", no ":" and no white space. Programs read a leading - as an option.
_INTERFACE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}"
Dscp = Annotated[int, Field(ge=0, le=63)]
Priority = Annotated[int, Field(ge=0, le=7)]
PciAddress = Annotated[
    str, BeforeValidator(parse_pci_address), WithJsonSchema({"type": "string", "pattern": f"^{_PCI}$"})
]
Interface = Annotated[
    str, BeforeValidator(parse_interface), WithJsonSchema({"type": "string", "pattern": f"^{_INTERFACE}$"})
]
RoceMtu = Annotated[int, BeforeValidator(parse_mtu), WithJsonSchema({"type": "integer", "enum": list(MTUS)})]


class Fabric(StrEnum):
    """How switches handle a full queue of the fabric."""

    LOSSLESS = "lossless"
    """They pause the sender in time (priority flow control, PFC). ECN should make that rare."""
    LOSSY = "lossy"
    """They drop packets. ECN slows senders before that, and cards retransmit what was lost."""


class Device(Model):
    """A port of a machine, identified by exactly one of the two."""

    pci: PciAddress | None = None
    """PCI address of the port, which stays the same if names change."""
    interface: Interface | None = None
    """Name of the network interface."""

    def __str__(self) -> str:
        return self.pci or self.interface or ""


class Roce(Model):
    """The RDMA fabric of a site. The defaults are what NVIDIA's switches and cards expect."""

    fabric: Fabric = Field(default=Fabric.LOSSLESS, strict=False)
    """lossless or lossy."""
    priority: Priority = 3
    """Priority of RDMA packets, which PFC pauses on a lossless fabric."""
    dscp: Dscp = 26
    """DSCP of RDMA packets. By default, cards and switches give 24 to 31 priority 3."""
    cnp_dscp: Dscp = 48
    """DSCP of congestion notifications (CNP), with which a receiver slows its sender."""
    cnp_priority: Priority = 6
    """Priority of congestion notifications, which switches serve first."""
    mtu: RoceMtu = 4096
    """Bytes of data in an RDMA packet."""
    link_mtu: int = Field(default=9000, ge=1280, le=9216)
    """MTU in bytes of every switch port of the fabric, and the maximum for ports of machines."""
    gbit_s: int | None = Field(default=None, ge=1, le=1600)
    """Speed in Gbit/s that every port must have. Default: any."""
    rails: dict[Name, dict[Name, Device]] = Field(min_length=1)
    """Pool -> rail -> port. Ports of one rail reach each other, also across pools. Pools left out have no RDMA."""

    @property
    def tos(self) -> int:
        """The byte of the IP header with DSCP and ECN: 106 for DSCP 26. 104 would be the same without ECN."""
        return self.dscp << 2 | ECT_0

    @property
    def pfc(self) -> tuple[int, ...]:
        """The lossless priorities."""
        return (self.priority,) if self.fabric is Fabric.LOSSLESS else ()

    @property
    def least_link_mtu(self) -> int:
        """The smallest link MTU with which Linux still uses `mtu`."""
        return self.mtu + HEADROOM


def mtu_over(link_mtu: int) -> int:
    """Return the RoCE MTU that Linux uses with a link MTU; 0 if none fits."""
    return max((mtu for mtu in MTUS if mtu + HEADROOM <= link_mtu), default=0)
