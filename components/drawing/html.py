"""A self-contained page: the drawing, and tables of what it omits. CSS highlights what belongs together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from cluster.artefacts import ArtefactSource
from cluster.pages import template
from cluster.spec import Cluster
from components.drawing.layout import draw
from components.drawing.pools import Gpus, gpus
from components.drawing.sites import rack_cards
from components.drawing.style import page_style
from components.drawing.svg import svg
from components.drawing.traffic import Traffic, traffic
from components.flows.flow import Flow, Protocol, Role, Table, spans
from components.flows.table import UPSTREAM, flows
from network import addresses
from network.vpn import Tunnel, tunnels


@dataclass(frozen=True)
class HostRow:
    """A row of the table of hosts. part: the ID of its group in the drawing."""

    part: str
    name: str
    what: str
    place: str
    address: str
    machine: str


@dataclass(frozen=True)
class GroupRow:
    """A row of the table of groups and pools. part: the ID of its group in the drawing."""

    part: str
    name: str
    place: str
    hosts: str
    machine: str
    gpus: Gpus | None = None


@dataclass(frozen=True)
class FlowRow:
    """A row of the table of flows. lines: the IDs of its arrows in the drawing; empty for flows among hosts of one role."""

    sources: str
    destination: str
    protocol: str
    ports: str
    why: str
    lines: tuple[str, ...]


def html(cluster: Cluster, source: ArtefactSource = UPSTREAM) -> str:
    """Return the text of the page. source: where the cluster's hosts download, as the provider knows it."""
    table = flows(cluster, source)
    arrows = traffic(table)
    drawing = draw(cluster, source)
    rows = tuple(_flow_rows(table, arrows))
    lines = tuple(dict.fromkeys(line for row in rows for line in row.lines))
    return template(Path(__file__).parent).render(
        title=drawing.title,
        drawing=Markup(svg(drawing)),
        style=Markup(page_style(lines)),
        hosts=tuple(_host_rows(cluster)),
        groups=tuple(_group_rows(cluster)),
        ranges=tuple(_ranges(cluster)),
        flows=rows,
        tunnels=[(_tunnel_id(tunnel), tunnel) for tunnel in tunnels(cluster)],
    )


def _host_rows(cluster: Cluster) -> Iterator[HostRow]:
    spec, plan = cluster.spec, addresses.plan(cluster)
    for host in plan.api_servers:
        machine = spec.control_plane.machine
        yield HostRow(f"host-{host.name}", host.name, "API server", f"zone {host.zone}", str(host.address), machine)
    hosts = {host.name: host for role in addresses.ROLES for host in plan.etcd[role]}
    for name, host in hosts.items():
        roles = [role for role in addresses.ROLES if host in plan.etcd[role]]
        machine = (spec.etcd.main if roles[0] == "main" else spec.etcd.events).machine
        what = f"etcd {' and '.join(roles)}"
        yield HostRow(f"host-{name}", name, what, f"zone {host.zone}", str(host.address), machine)
    cards = {name: rack_cards(name, site) for name, site in spec.sites.items()}
    for pool, machine_ in cluster.host_list():
        site = spec.pools[pool].site
        if site is not None:
            place = f"{site}, rack {machine_.rack}"
            part = cards[site][machine_.rack]
            yield HostRow(part, machine_.name, f"worker of pool {pool}", place, str(machine_.address), "")


def _group_rows(cluster: Cluster) -> Iterator[GroupRow]:
    """Yield the group of API servers, and the pools."""
    control = cluster.spec.control_plane
    if not cluster.is_lab:
        zones = ", ".join(map(str, control.zones))
        yield GroupRow("host-api", "API servers", zones, str(control.api_servers), control.machine)
    for name, pool in cluster.spec.pools.items():
        if pool.site is None:
            zones = ", ".join(map(str, pool.zones or control.zones))
            place, hosts, machine = zones, f"{pool.min}–{pool.max}", pool.machine or ""
        else:
            place, hosts, machine = pool.site, f"{len(cluster.hosts.get(name, ())):,}", pool.hardware or ""
        yield GroupRow(f"pool-{name}", f"pool {name}", place, hosts, machine, gpus(cluster, name))


def _ranges(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield (what, its addresses)."""
    plan, network = addresses.plan(cluster), cluster.spec.network
    yield "API", plan.endpoint
    yield "Load balancer", ", ".join(map(str, plan.balancers))
    yield "Hosts in the region", str(network.nodes)
    yield "Pods", f"{network.pods}, a /{network.node_prefix} for each node"
    yield "Services", f"{network.services}; API {plan.service_ip}, DNS {plan.dns_ip}"
    for name, site in cluster.spec.sites.items():
        for rack, range_ in site.racks.items():
            yield f"{name}, rack {rack}", str(range_)


def _flow_rows(table: Table, arrows: Traffic) -> Iterator[FlowRow]:
    alike: dict[tuple[Role, Protocol, tuple[int, ...], str], list[Flow]] = {}
    for flow in table:
        alike.setdefault((flow.destination, flow.protocol, flow.ports, flow.why), []).append(flow)
    for (destination, protocol, ports, why), own in alike.items():
        lines = tuple(dict.fromkeys(line for flow in own if (line := arrows.line_of(flow))))
        numbers = ", ".join(spans(ports))
        yield FlowRow(", ".join(flow.source for flow in own), destination, protocol, numbers, why, lines)


def _tunnel_id(tunnel: Tunnel) -> str:
    return f"tunnel-{tunnel.site}-{tunnel.router}-{tunnel.gateway_end}"
