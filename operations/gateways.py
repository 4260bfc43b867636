"""Edge routers of a cluster's sites: what they must be told, and telling those that are ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from clients.access import NotBuiltError
from cluster.errors import RefusedError
from cluster.load import clusters, find_cluster, load_beside
from cluster.project import ROOT
from cluster.spec import Cluster
from cluster.vpn import ENDS
from components.workers.group_vars import given_to_routers
from inventories.build import Inventory
from inventories.gateways import COMPUTED, PLAYBOOK, build
from inventories.report import Progress, RunReport
from inventories.run import run
from network import swanctl
from network.gateway import EdgeRouter, Joined, routers
from network.vpn import Tunnel, tunnels
from operations.router_certificates import CertificateError, folder_of, load, papers
from operations.stack import access_to, kept_secret


@dataclass(frozen=True)
class Work:
    """What is to be told to whom."""

    routers: tuple[EdgeRouter, ...]
    inventory: Inventory = field(repr=False)


def told(
    cluster: Cluster, gateways: dict[str, tuple[str, ...]], names: dict[str, tuple[str, ...]] | None = None
) -> list[dict[str, Any]]:
    """Every tunnel of the cluster as its router must be set, whatever make it is. The key is named and not told.

    gateways, names: as in `ClusterOutputs`; the gateway's address and name are None where they are not known yet.
    """
    from cluster.vpn import gateway

    ours = gateway(cluster.spec)
    found: list[dict[str, Any]] = []
    for tunnel in tunnels(cluster):
        ends = gateways.get(f"{tunnel.site}/{tunnel.router}", ())
        found.append(
            {
                "site": tunnel.site,
                "router": tunnel.router,
                "tunnel": tunnel.gateway_end,
                "router_address": str(tunnel.peer),
                "gateway_address": ends[tunnel.gateway_end] if tunnel.gateway_end < len(ends) else None,
                "key": tunnel.secret or None,
                "certificate": _certificate(cluster, tunnel, names),
                "ike": {"version": tunnel.ike_version, "proposal": swanctl.IKE, "lifetime_s": ours.ike_life},
                "esp": {"proposal": swanctl.ESP[tunnel.esp], "lifetime_s": ours.esp_life},
                "selectors": "0.0.0.0/0 both ways (route-based)",
                "inside": {"router": str(tunnel.edge.address), "gateway": str(tunnel.cloud.address)},
                "bgp": {
                    "router_asn": tunnel.edge.asn,
                    "gateway_asn": tunnel.cloud.asn,
                    "keepalive_s": ours.keepalive,
                    "hold_s": ours.hold,
                    "announce": list(map(str, tunnel.edge.announces)),
                    "accept": list(map(str, tunnel.cloud.announces)),
                },
                "mtu": tunnel.mtu,
                "mss": tunnel.mss,
            }
        )
    if not found:
        raise RefusedError(f"{cluster.name} has no tunnels: no site in its spec has a vpn", code="no-router")
    return found


def _certificate(cluster: Cluster, tunnel: Tunnel, names: dict[str, tuple[str, ...]] | None) -> dict[str, Any] | None:
    """What both ends show each other, and when the router's certificate ends or why it can't be shown."""
    settings = tunnel.certificate
    if settings is None:
        return None
    ends = settings.names or (names or {}).get(f"{tunnel.site}/{tunnel.router}", ())
    found: dict[str, Any] = {
        "file": settings.file,
        "ca": settings.ca,
        "gateway_subject": ends[tunnel.gateway_end] if tunnel.gateway_end < len(ends) else None,
    }
    try:
        one = load(settings, folder_of(cluster))
    except CertificateError as error:
        return {**found, "expires": None, "wrong": str(error)}
    return {**found, "expires": one.expires.isoformat(), "wrong": None}


def known_gateways(
    cluster: Cluster, report: Callable[[str], None]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Where the ends of the cluster's gateway are, and the names of their certificates; nothing before the first `up`."""
    try:
        outputs = access_to(cluster, report).outputs
    except NotBuiltError:
        outputs = None
    return (outputs.vpn_gateways, outputs.vpn_names) if outputs else ({}, {})


def plan(cluster: Cluster, without: Collection[str], report: Callable[[str], None]) -> Work:
    """What the cluster's own routers are told: their tunnels to it, and to every other cluster that they join.

    without: clusters whose tunnels a router is not to have. Raises RefusedError for others that are not built
    from this checkout: a router would lose its tunnels to them.
    """
    mine = {tunnel.peer for tunnel in tunnels(cluster) if _host(cluster, tunnel)}
    if not mine:
        hint = "write sites.<site>.vpn.routers.<router>.host for machines that are to be configured"
        raise RefusedError(f"no edge router of {cluster.name} is a machine of ours; {hint}", code="no-router")
    sharing = [cluster, *(other for other in _others(cluster) if mine & {tunnel.peer for tunnel in tunnels(other)})]
    joined = [
        Joined(one, *known_gateways(one, report), papers(one, mine, report))
        for one in sharing
        if one.name not in without
    ]
    if missing := [one.cluster.name for one in joined if not _complete(one, mine)]:
        raise RefusedError(
            f"where the gateway of {', '.join(missing)} is isn't known in this checkout, and routers would lose their "
            f"tunnels to it; build it first (./menagerie up {missing[0]}), or leave it out: --without {missing[0]}",
            code="unknown-gateway",
        )
    found = tuple(router for router in routers(joined) if router.address in mine)
    given = {one.cluster.name: given_to_routers(one.cluster, COMPUTED, ROOT) for one in joined}
    keys = dict(_keys([one.cluster for one in joined], found, report))
    try:
        return Work(found, build(cluster.name, found, keys, given))
    except ValueError as error:
        raise RefusedError(str(error), code="disagreement") from None


def configure(work: Work, *, check: bool, diff: bool, watch: Callable[[Progress], None]) -> RunReport:
    """One router after another; the first that fails is the last, so that a site keeps its other one."""
    return run(work.inventory, check=check, diff=diff, on_progress=watch, playbook=PLAYBOOK)


def _others(cluster: Cluster) -> Iterator[Cluster]:
    for name in clusters(ROOT):
        if name != cluster.name:
            loaded, _ = load_beside(find_cluster(name, ROOT), ROOT, allow_unknown=True)
            if loaded:
                yield loaded.cluster


def _host(cluster: Cluster, tunnel: Tunnel) -> object:
    vpn = cluster.spec.sites[tunnel.site].vpn
    return vpn.routers[tunnel.router].host if vpn else None


def _complete(one: Joined, mine: Collection[object]) -> bool:
    def known(tunnel: Tunnel) -> bool:
        router = f"{tunnel.site}/{tunnel.router}"
        named = tunnel.certificate is None or tunnel.certificate.names or len(one.names.get(router, ())) == ENDS
        return len(one.gateways.get(router, ())) > tunnel.gateway_end and bool(named)

    return all(known(tunnel) for tunnel in tunnels(one.cluster) if tunnel.peer in mine)


def _keys(
    sharing: list[Cluster], found: tuple[EdgeRouter, ...], report: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    by_name = {one.name: one for one in sharing}
    kept: dict[tuple[str, str], str] = {}
    for router in found:
        for line in (each for each in router.lines if each.papers is None):
            wanted = line.cluster, line.tunnel.secret
            if wanted not in kept:
                value = kept_secret(by_name[line.cluster], line.tunnel.secret, report)
                if value is None:
                    command = f"./menagerie secret {line.cluster} {line.tunnel.secret}"
                    raise RefusedError(
                        f"{line.cluster} keeps no secret {line.tunnel.secret}; give it with: {command}", code="no-key"
                    )
                kept[wanted] = value
            yield f"{router.machine}/{line.name}", kept[wanted]
