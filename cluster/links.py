"""The model of links of a site's machines: their names, settings and cables.

Machines of a pool have ports in the same places, so ports are declared once per pool (`sites.<site>.links`). MACs of
cards and cables are declared per machine (`links` in the hosts file).
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from cluster.model import Model
from cluster.quantities import refuse
from cluster.roce import parse_pci_address
from cluster.words import Feature, OfSwitch

# Linux assigns these names in the order in which it finds cards; systemd.link(5) warns against using them.
_KERNELS = re.compile(r"(eth|wlan|ib|usb)\d+|lo")
_NAME = r"[a-z][a-z0-9_.-]{0,14}"
_PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"


def parse_link_name(value: Any) -> Any:
    """Validate a name that systemd can give a link, such as ens1f0np0 or node0."""
    if isinstance(value, str):
        problem = ""
        if not re.fullmatch(_NAME, value):
            problem = "isn't a valid name of a link: use lower case letters, digits and .-_, starting with a letter, at most 15"
        elif _KERNELS.fullmatch(value):
            problem = "is a name that the kernel assigns in the order in which it finds cards"
        if problem:
            raise refuse("LNK-001", f"{value!r} {problem}", "write another name, for example ens1f0 or node0")
    return value


def parse_pci(value: Any) -> Any:
    """Validate a PCI address like `cluster.roce`, with the error code of links."""
    try:
        return parse_pci_address(value)
    except PydanticCustomError as error:
        raise PydanticCustomError("LNK-001", "{message}", error.context) from None


LinkName = Annotated[str, BeforeValidator(parse_link_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"})]
PciAddress = Annotated[str, BeforeValidator(parse_pci), WithJsonSchema({"type": "string", "pattern": f"^{_PCI}$"})]


class Link(Model):
    """A port of every machine of a pool."""

    pci: PciAddress | None = None
    """PCI address of the port. Default: the port is found by its MAC, which the hosts file then has for each machine."""
    mtu: int | None = Field(default=None, ge=1280, le=9216)
    """MTU in bytes. Default: the site's link_mtu."""
    rx_ring: int | None = Field(default=None, ge=1, le=65536)
    """Size of the receive ring, in packets. Default: the driver's."""
    tx_ring: int | None = Field(default=None, ge=1, le=65536)
    """Size of the transmit ring, in packets. Default: the driver's."""
    offloads: dict[Feature, bool] = Field(default={})
    """Features of the card, on or off, with their names in `ethtool -k`. Default: the driver's."""


class Cable(Model):
    """One machine's end of a link: the card, and where its cable leads."""

    mac: str | None = None
    """MAC of the card's port, such as b8:59:9f:aa:bb:cc."""
    switch: OfSwitch | None = None
    """Name of the switch as it announces itself (LLDP system name)."""
    port: int | OfSwitch | None = None
    """Port of the switch: its number, such as 17, or its name as the switch announces it, such as Ethernet1/17."""


Links = dict[LinkName, Link]
"""Name -> link, for one pool."""
