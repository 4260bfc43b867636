"""The packet rules of the lab's router, as input for ``nft``."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from sandbox.lab import plan, texts
from sandbox.lab.plan import LabSpec

UPLINK = "uplink"


def router(spec: LabSpec) -> str:
    """Return the rules that say who may open connections to whom through the router."""
    segments = plan.segments(spec)
    racks = [segments[plan.rack(name)].bridge for name in sorted(spec.racks)]
    workers = segments[plan.WORKERS].bridge if spec.workers else ""
    return texts.render(
        "router.nft.j2",
        uplink=UPLINK,
        cloud=segments[plan.CLOUD].bridge,
        services=segments[plan.SERVICES].bridge,
        racks=racks,
        workers=workers,
        between_workers=list(spec.between_workers),
        racks_to_cloud=list(spec.racks_to_cloud),
        workers_to_cloud=list(spec.workers_to_cloud),
        control_plane=segments[plan.CLOUD].network,
        endpoint=spec.endpoint,
        endpoint_ports=list(spec.endpoint_ports),
    )


def isolated(racks: Sequence[str], seconds: int) -> str:
    """Return rules that let racks reach only one another for `seconds`; the kernel then drops the rules automatically."""
    bridges = [plan.interface("br-", plan.rack(name)) for name in racks]
    return texts.render("isolated.nft.j2", racks=bridges, seconds=seconds)


def rejoined() -> str:
    """Return the text that removes the rules of `isolated`."""
    return "table inet isolated\ndelete table inet isolated\n"


def only_own_address(port: str, mac: str, address: IPv4Address) -> str:
    """Return rules that drop what a host sends from any address but its own, at its port of the store's bridge."""
    return texts.render("port.nft.j2", port=port, mac=mac, address=address)


def no_port(port: str) -> str:
    """Return the text that removes the rules of `only_own_address`."""
    return f"table netdev {port}\ndelete table netdev {port}\n"
