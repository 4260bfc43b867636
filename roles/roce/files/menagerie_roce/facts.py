"""Facts about a rail's port, for tests."""

from __future__ import annotations

from typing import Any

from .desired import Settings, smaller_mtu
from .edge import IB, NET, Edge, Refused
from .ports import Port


def facts(edge: Edge, settings: Settings, rail: str) -> dict[str, Any]:
    """Return the facts that a test needs about one rail's port. Refused if it can't be used."""
    port = Port(edge, rail, settings["rails"][rail])
    net = f"{NET}/{port.interface}"
    speed = edge.read(f"{net}/speed") or ""
    return {
        "interface": port.interface,
        "rdma": port.rdma,
        "port": int(port.port),
        "gid_index": _gid_index(edge, port),
        "gbit_s": int(speed) // 1000 if speed.isdigit() else None,
        "mtu": smaller_mtu(int(edge.read(f"{net}/mtu") or 0)),
        "state": (edge.read(f"{IB}/{port.rdma}/ports/{port.port}/state") or "").rpartition(" ")[2],
    }


def _gid_index(edge: Edge, port: Port) -> int:
    """Return the index of the port's address that sends RoCE v2 packets over IPv4."""
    base = f"{IB}/{port.rdma}/ports/{port.port}"
    for index in sorted(edge.names(f"{base}/gids"), key=int):
        kind, gid = edge.read(f"{base}/gid_attrs/types/{index}"), edge.read(f"{base}/gids/{index}") or ""
        own = edge.read(f"{base}/gid_attrs/ndevs/{index}") in (port.interface, None)
        if kind == "RoCE v2" and gid.startswith("0000:0000:0000:0000:0000:ffff:") and own:
            return int(index)
    raise Refused(f"{port.interface}: {port.rdma} has no RoCE v2 address over IPv4; give the port an address")
