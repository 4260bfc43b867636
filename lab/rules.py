"""The packet rules of the lab's router, as text for ``nft``."""

from __future__ import annotations

from ipaddress import IPv4Address

from jinja2 import Environment, PackageLoader, StrictUndefined

from lab import plan
from lab.plan import LabSpec

UPLINK = "uplink"

_TEMPLATES = Environment(
    loader=PackageLoader("lab"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


def router(spec: LabSpec) -> str:
    """Who may open connections to whom, through the router."""
    segments = plan.segments(spec)
    racks = [segments[plan.rack(name)].bridge for name in sorted(spec.racks)]
    return _TEMPLATES.get_template("router.nft.j2").render(
        uplink=UPLINK,
        cloud=segments[plan.CLOUD].bridge,
        services=segments[plan.SERVICES].bridge,
        racks=racks,
        nodes=spec.nodes,
        endpoint=spec.endpoint,
        endpoint_ports=list(spec.endpoint_ports),
    )


def only_own_address(port: str, mac: str, address: IPv4Address) -> str:
    """Drop what a host sends under an address other than its own, at its port of the store's bridge."""
    return _TEMPLATES.get_template("port.nft.j2").render(port=port, mac=mac, address=address)


def no_port(port: str) -> str:
    """Remove the rules of `only_own_address`."""
    return f"table netdev {port}\ndelete table netdev {port}\n"
