"""Tunnels of a cluster's sites, as the edge routers tell that are ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from clients.remote.executor import Done
from cluster.spec import Cluster
from inventories.gateways import PROGRAM
from operations.ssh import ssh_to
from operations.status.model import Item

ANSWER_S = 15.0
"""For a connection by ssh, and what swanctl and vtysh take."""


def edge_routers(cluster: Cluster) -> tuple[str, ...]:
    """Names of the edge routers that are ours to configure, as ssh and inventories have them."""
    return tuple(
        f"{site}-{name}"
        for site, settings in cluster.spec.sites.items()
        for name, router in (settings.vpn.routers.items() if settings.vpn else ())
        if router.host
    )


def tunnels(cluster: Cluster) -> Iterator[Item]:
    """Each tunnel of each of them, and what can't be asked."""
    with ssh_to(cluster) as executor:
        running = {name: executor.start(name, [PROGRAM, "status", "--json"]) for name in edge_routers(cluster)}
        for name, asked in running.items():
            yield from _of_router(cluster.name, name, asked.wait(ANSWER_S))


def _of_router(cluster: str, router: str, done: Done) -> Iterator[Item]:
    try:
        told: list[dict[str, Any]] = json.loads(done.text)
    except ValueError:
        help_ = f"./menagerie vpn configure {cluster} --dry-run"
        yield Item("tunnels", router, False, f"its tunnels can't be asked for: {done.reason}", help_)
        return
    for each in told:
        ok = each["ike"] == "ESTABLISHED" and each["bgp"] == "Established"
        detail = f"keys {each['ike'].lower()}, BGP {each['bgp'].lower()} for {each['since']}, {each['routes']} routes"
        help_ = "" if ok else 'see docs/how-to/vpn.md, "When it goes wrong"'
        yield Item("tunnels", f"{router}, {each['connection']}", ok, detail, help_)
