"""Edge routers of a cluster's sites: their settings, and configuration of those that are ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from cluster.errors import RefusedError
from cluster.load import clusters, find_cluster, load_beside
from cluster.project import ROOT
from cluster.spec import Cluster
from cluster.vpn import ENDS, gateway
from components.workers.group_vars import given_to_routers
from inventories.build import Inventory
from inventories.gateways import COMPUTED, PLAYBOOK, build
from inventories.report import Progress, RunReport
from inventories.run import run
from network import swanctl
from network.gateway import Joined, RouterConfig, routers
from network.vpn import Tunnel, tunnels
from operations.router_certificates import CertificateError, certificate_chains, folder_of, load
from operations.stack import access_if_built, kept_secret


@dataclass(frozen=True)
class GatewayWork:
    """Routers to configure, with their inventory."""

    routers: tuple[RouterConfig, ...]
    inventory: Inventory = field(repr=False)


def tunnel_settings(
    cluster: Cluster, gateways: dict[str, tuple[str, ...]], names: dict[str, tuple[str, ...]] | None = None
) -> list[dict[str, Any]]:
    """Return the settings of every tunnel of the cluster for its router, of any make. Has the key's name, not the key.

    gateways, names: as in `ClusterOutputs`. The gateway's address and name are None while they are unknown.
    """
    defaults = gateway(cluster.spec)
    settings: list[dict[str, Any]] = []
    for tunnel in tunnels(cluster):
        ends = gateways.get(f"{tunnel.site}/{tunnel.router}", ())
        settings.append(
            {
                "site": tunnel.site,
                "router": tunnel.router,
                "tunnel": tunnel.gateway_end,
                "router_address": str(tunnel.peer),
                "gateway_address": ends[tunnel.gateway_end] if tunnel.gateway_end < len(ends) else None,
                "key": tunnel.secret or None,
                "certificate": _certificate(cluster, tunnel, names),
                "ike": {"version": tunnel.ike_version, "proposal": swanctl.IKE, "lifetime_s": defaults.ike_life},
                "esp": {"proposal": swanctl.ESP[tunnel.esp], "lifetime_s": defaults.esp_life},
                "selectors": "0.0.0.0/0 both ways (route-based)",
                "inside": {"router": str(tunnel.edge.address), "gateway": str(tunnel.cloud.address)},
                "bgp": {
                    "router_asn": tunnel.edge.asn,
                    "gateway_asn": tunnel.cloud.asn,
                    "keepalive_s": defaults.keepalive,
                    "hold_s": defaults.hold,
                    "announce": list(map(str, tunnel.edge.announces)),
                    "accept": list(map(str, tunnel.cloud.announces)),
                },
                "mtu": tunnel.mtu,
                "mss": tunnel.mss,
            }
        )
    if not settings:
        raise RefusedError(f"{cluster.name} has no tunnels: no site in its spec has a vpn", code="no-router")
    return settings


def _certificate(cluster: Cluster, tunnel: Tunnel, names: dict[str, tuple[str, ...]] | None) -> dict[str, Any] | None:
    """Return what both ends present, and when the router's certificate expires or why it can't be used."""
    settings = tunnel.certificate
    if settings is None:
        return None
    ends = settings.names or (names or {}).get(f"{tunnel.site}/{tunnel.router}", ())
    shown: dict[str, Any] = {
        "file": settings.file,
        "ca": settings.ca,
        "gateway_subject": ends[tunnel.gateway_end] if tunnel.gateway_end < len(ends) else None,
    }
    try:
        certificate = load(settings, folder_of(cluster))
    except CertificateError as error:
        return {**shown, "expires": None, "wrong": str(error)}
    return {**shown, "expires": certificate.expires.isoformat(), "wrong": None}


def gateway_addresses(
    cluster: Cluster, report: Callable[[str], None]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the addresses of the gateway's ends and the names in their certificates; ({}, {}) before the first `up`."""
    access = access_if_built(cluster, report)
    return (access.outputs.vpn_gateways, access.outputs.vpn_names) if access else ({}, {})


def plan(cluster: Cluster, without: Collection[str], report: Callable[[str], None]) -> GatewayWork:
    """Plan the configuration of the cluster's own routers: their tunnels to it and to every other cluster they join.

    without: clusters to leave out. Raises RefusedError for other clusters whose gateway this checkout doesn't know: a
    router would lose its tunnels to them.
    """
    mine = {tunnel.peer for tunnel in tunnels(cluster) if _host(cluster, tunnel)}
    if not mine:
        hint = "set sites.<site>.vpn.routers.<router>.host for machines to configure"
        raise RefusedError(f"no edge router of {cluster.name} is configured by Menagerie; {hint}", code="no-router")
    sharing = [cluster, *(other for other in _others(cluster) if mine & {tunnel.peer for tunnel in tunnels(other)})]
    joined = [
        Joined(member, *gateway_addresses(member, report), certificate_chains(member, mine, report))
        for member in sharing
        if member.name not in without
    ]
    if missing := [member.cluster.name for member in joined if not _complete(member, mine)]:
        raise RefusedError(
            f"this checkout doesn't know the gateway of {', '.join(missing)}, and routers would lose their tunnels to it; "
            f"build it first (./menagerie up {missing[0]}), or leave it out: --without {missing[0]}",
            code="unknown-gateway",
        )
    own_routers = tuple(router for router in routers(joined) if router.address in mine)
    variables = {member.cluster.name: given_to_routers(member.cluster, COMPUTED, ROOT) for member in joined}
    keys = dict(_keys([member.cluster for member in joined], own_routers, report))
    try:
        return GatewayWork(own_routers, build(cluster.name, own_routers, keys, variables))
    except ValueError as error:
        raise RefusedError(str(error), code="disagreement") from None


def configure(work: GatewayWork, *, check: bool, diff: bool, watch: Callable[[Progress], None]) -> RunReport:
    """Configure one router after another. Stop at the first failure, so that a site keeps its other router."""
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


def _complete(joined: Joined, mine: Collection[object]) -> bool:
    def known(tunnel: Tunnel) -> bool:
        router = f"{tunnel.site}/{tunnel.router}"
        named = tunnel.certificate is None or tunnel.certificate.names or len(joined.names.get(router, ())) == ENDS
        return len(joined.gateways.get(router, ())) > tunnel.gateway_end and bool(named)

    return all(known(tunnel) for tunnel in tunnels(joined.cluster) if tunnel.peer in mine)


def _keys(
    sharing: list[Cluster], own_routers: tuple[RouterConfig, ...], report: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    by_name = {cluster.name: cluster for cluster in sharing}
    kept: dict[tuple[str, str], str] = {}
    for router in own_routers:
        for line in (line_ for line_ in router.lines if line_.certificates is None):
            secret = line.cluster, line.tunnel.secret
            if secret not in kept:
                value = kept_secret(by_name[line.cluster], line.tunnel.secret, report)
                if value is None:
                    command = f"./menagerie secret {line.cluster} {line.tunnel.secret}"
                    raise RefusedError(
                        f"{line.cluster} has no secret {line.tunnel.secret}; store it with: {command}", code="no-key"
                    )
                kept[secret] = value
            yield f"{router.machine}/{line.name}", kept[secret]
