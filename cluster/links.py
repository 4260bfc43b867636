"""The part of the model that is about the links of a site's machines: what each is called and set to, and where it leads.

Ports of a pool are in the same places of every machine, so they are declared once a pool (`sites.<site>.links`); cards'
addresses and cables are each machine's own (`links` in the hosts file).
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

# Linux names cards so in the order in which it finds them; systemd.link(5) warns of giving such names.
_KERNELS = re.compile(r"(eth|wlan|ib|usb)\d+|lo")
_NAME = r"[a-z][a-z0-9_.-]{0,14}"
_PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"


def parse_link_name(value: Any) -> Any:
    """A name that systemd can give a link: ens1f0np0, node0."""
    if isinstance(value, str):
        problem = ""
        if not re.fullmatch(_NAME, value):
            problem = "can't be the name of a link: small letters, digits and .-_, at most 15"
        elif _KERNELS.fullmatch(value):
            problem = "is a name that the kernel gives cards in the order in which it finds them"
        if problem:
            raise refuse("LNK-001", f"{value!r} {problem}", "write a name of its own, for example ens1f0 or node0")
    return value


def parse_pci(value: Any) -> Any:
    """As `cluster.roce` reads one."""
    try:
        return parse_pci_address(value)
    except PydanticCustomError as error:
        raise PydanticCustomError("LNK-001", "{message}", error.context) from None


LinkName = Annotated[str, BeforeValidator(parse_link_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"})]
PciAddress = Annotated[str, BeforeValidator(parse_pci), WithJsonSchema({"type": "string", "pattern": f"^{_PCI}$"})]


class Link(Model):
    """A port of every machine of a pool."""

    pci: PciAddress | None = None
    """PCI address of the port. Default: it is found by its MAC, which the hosts file then gives for each machine."""
    mtu: int | None = Field(default=None, ge=1280, le=9216)
    """Bytes. Default: the site's link_mtu."""
    rx_ring: int | None = Field(default=None, ge=1, le=65536)
    """Packets that the card has room for on their way in. Default: the driver's."""
    tx_ring: int | None = Field(default=None, ge=1, le=65536)
    """The same on their way out."""
    offloads: dict[Feature, bool] = Field(default={})
    """Features of the card, on or off, by the names of `ethtool -k`. Default: the driver's."""


class Cable(Model):
    """What one machine has at a link: the card and where its cable leads."""

    mac: str | None = None
    """Of the card's port: b8:59:9f:aa:bb:cc."""
    switch: OfSwitch | None = None
    """Name of the switch, as it says it itself (LLDP system name)."""
    port: int | OfSwitch | None = None
    """The switch's port: 17, or as it says it itself: Ethernet1/17."""


Links = dict[LinkName, Link]
"""Name of a link -> the link, of one pool."""
