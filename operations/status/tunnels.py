"""Status of the tunnels of a cluster's sites, from our own edge routers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from clients.remote.executor import Done
from cluster.spec import Cluster
from inventories.gateways import PROGRAM
from operations.ssh import ssh_to
from operations.status.model import StatusItem

ANSWER_S = 15.0
"""Time-out for the ssh connection plus swanctl and vtysh."""


def edge_routers(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the edge routers that we configure, as in ssh and inventories."""
    return tuple(
        f"{site}-{name}"
        for site, settings in cluster.spec.sites.items()
        for name, router in (settings.vpn.routers.items() if settings.vpn else ())
        if router.host
    )


def tunnels(cluster: Cluster) -> Iterator[StatusItem]:
    """Yield every tunnel of our edge routers, and the routers that can't be asked."""
    with ssh_to(cluster) as executor:
        running = {name: executor.start(name, [PROGRAM, "status", "--json"]) for name in edge_routers(cluster)}
        for name, process in running.items():
            yield from _of_router(cluster.name, name, process.wait(ANSWER_S))


def _of_router(cluster: str, router: str, done: Done) -> Iterator[StatusItem]:
    try:
        tunnels_: list[dict[str, Any]] = json.loads(done.text)
    except ValueError:
        help_ = f"./menagerie vpn configure {cluster} --dry-run"
        yield StatusItem("tunnels", router, False, f"can't read its tunnels: {done.reason}", help_)
        return
    for tunnel in tunnels_:
        ok = tunnel["ike"] == "ESTABLISHED" and tunnel["bgp"] == "Established"
        detail = f"keys {tunnel['ike'].lower()}, BGP {tunnel['bgp'].lower()} for {tunnel['since']}, {tunnel['routes']} routes"
        help_ = "" if ok else 'see docs/how-to/vpn.md, "When it goes wrong"'
        yield StatusItem("tunnels", f"{router}, {tunnel['connection']}", ok, detail, help_)
