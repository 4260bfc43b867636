"""The part of the model that is about RDMA over Ethernet (RoCE v2): one fabric a site, and its rails.

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
"""RFC 3168: the sender understands ECN. Switches drop what lacks it where they would have marked it."""

MTUS = (256, 512, 1024, 2048, 4096)
"""Path MTUs of InfiniBand, and so of RoCE."""


def parse_pci_address(value: Any) -> Any:
    """``"0000:1a:00.0"``: domain, bus, device and function, as sysfs writes them."""
    if isinstance(value, str) and not re.fullmatch(_PCI, value):
        hint = 'write domain:bus:device.function in small letters, as `lspci -D` does: "0000:1a:00.0"'
        raise refuse("ROC-005", f"{value} isn't a PCI address", hint)
    return value


def parse_interface(value: Any) -> Any:
    """The name of a network interface, such as ens1f0np0."""
    if isinstance(value, str) and not re.fullmatch(_INTERFACE, value):
        hint = "write what `ip link` shows: at most 15 letters, digits and _.-, no . or - first, for example ens1f0np0"
        raise refuse("ROC-005", f"{value!r} can't be the name of a network interface", hint)
    return value


def parse_mtu(value: Any) -> Any:
    """One of `MTUS`."""
    if isinstance(value, int) and value not in MTUS:
        raise refuse("CFG-015", f"{value} isn't one of {', '.join(map(str, MTUS))}", "write 4096")
    return value


_PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
# Linux, dev_valid_name: at most 15 bytes, no "/", no ":" and no white space. Programs take a - at the beginning for an option.
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
    """What the switches do when a queue of the fabric is full."""

    LOSSLESS = "lossless"
    """They stop the sender in time (priority flow control, PFC). ECN should make that rare."""
    LOSSY = "lossy"
    """They drop. ECN slows senders before that, and cards repeat what was lost."""


class Device(Model):
    """A port of a machine, by exactly one of the two."""

    pci: PciAddress | None = None
    """PCI address of the port: it stays when a name changes."""
    interface: Interface | None = None
    """Name of the network interface."""

    def __str__(self) -> str:
        return self.pci or self.interface or ""


class Roce(Model):
    """The fabric for RDMA of a site. The defaults are what NVIDIA's switches and cards expect."""

    fabric: Fabric = Field(default=Fabric.LOSSLESS, strict=False)
    """lossless, or lossy."""
    priority: Priority = 3
    """Priority of RDMA's packets: the one that PFC stops on a lossless fabric."""
    dscp: Dscp = 26
    """Mark of RDMA's packets. Cards and switches give 24 to 31 priority 3 unless told otherwise."""
    cnp_dscp: Dscp = 48
    """Mark of congestion notifications (CNP), by which a receiver slows its sender."""
    cnp_priority: Priority = 6
    """Priority of congestion notifications; switches serve it first."""
    mtu: RoceMtu = 4096
    """Bytes of data in a packet of RDMA."""
    link_mtu: int = Field(default=9000, ge=1280, le=9216)
    """Bytes that every switch port of the fabric carries, and no port of a machine goes beyond."""
    gbit_s: int | None = Field(default=None, ge=1, le=1600)
    """Speed in Gbit/s that every port must have come up with. Default: whatever a port says."""
    rails: dict[Name, dict[Name, Device]] = Field(min_length=1)
    """Pool -> rail -> port. Ports of one rail reach each other, in whatever pool. Pools left out have no RDMA."""

    @property
    def tos(self) -> int:
        """The byte of the IP header that the mark and ECN share: 106 for DSCP 26. 104 would be a mark without ECN."""
        return self.dscp << 2 | ECT_0

    @property
    def pfc(self) -> tuple[int, ...]:
        """Priorities that are lossless."""
        return (self.priority,) if self.fabric is Fabric.LOSSLESS else ()

    @property
    def least_link_mtu(self) -> int:
        """The smallest link MTU under which Linux still takes `mtu`."""
        return self.mtu + HEADROOM


def mtu_over(link_mtu: int) -> int:
    """The RoCE MTU that Linux takes over a link; 0 where none fits."""
    return max((mtu for mtu in MTUS if mtu + HEADROOM <= link_mtu), default=0)
