"""A cluster's drawing: the region with its zones as columns, the sites below it, and connections as arrows.

Arrows inside the cluster are at the left, arrows to services around it at the right. Everything follows from the spec;
equal specs give equal drawings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from components.drawing import lanes, parts
from components.drawing.bands import GAP, PAD, STRIP, Columns, Placed, place
from components.drawing.cards import Band
from components.drawing.lanes import LANE, Lane, Tap
from components.drawing.legend import legend
from components.drawing.pools import most_gpus
from components.drawing.services import Services
from components.drawing.shapes import Box, Drawing, Group, Line, Text, fit, wrap
from components.drawing.traffic import Traffic, kind_of, traffic
from components.flows.flow import Role
from components.flows.table import UPSTREAM, flows
from network import addresses
from network.vpn import Tunnel, tunnels

_MARGIN = 24.0
_CORRIDOR = 64.0
"""Height between the region and the routers of tunnels."""
_REGION_HEAD = 74.0
_ZONE_WIDTH, _LEAST_WIDTH = 200.0, 600.0


def draw(cluster: Cluster, source: ArtefactSource = UPSTREAM) -> Drawing:
    """Draw a checked cluster. source: where its hosts download, as the provider knows it."""
    plan, table, joined = addresses.plan(cluster), flows(cluster, source), tunnels(cluster)
    arrows = traffic(table)
    bands = tuple(parts.bands(cluster, plan, table, joined))
    zones = tuple(str(zone) for zone in cluster.spec.control_plane.zones)
    width = max(_ZONE_WIDTH * len(zones), _LEAST_WIDTH)
    # The length of a lane does not depend on where the bands start, so the lanes can be counted before the bands are placed.
    unplaced = lanes.assign(_taps(_stack(bands, 0, 0, Columns(STRIP, width, zones), arrows)))
    x = _MARGIN + lanes.width(unplaced.values()) + PAD
    columns = Columns(x + STRIP, width, zones)
    title, about = _words(cluster, arrows, joined)
    right = columns.x + width + 2 * PAD
    heading = _heading(title, about, right - _MARGIN)
    key = legend(_kinds(arrows, joined), _MARGIN, heading[-1].y + GAP, right - _MARGIN)
    placed = _stack(bands, x, heading[-1].y + 2 * GAP + key.height, columns, arrows)
    around = Services(placed, arrows, parts.services(cluster, source), right, _region_top(placed))
    groups = (
        Group("heading", "part", title, heading),
        *key.groups,
        *_region(cluster, placed, columns, x),
        *(group for band in placed for group in band.groups),
        *around.boxes(),
        *_tunnels(placed, joined),
        *_inside(placed, arrows, x),
        *around.lines(),
    )
    bottom = max(around.bottom, *(band.box.y + band.box.height for band in placed))
    return Drawing(around.right + _MARGIN, bottom + _MARGIN, title, about, groups)


def _kinds(arrows: Traffic, joined: Sequence[Tunnel]) -> set[str]:
    """Return the kinds of lines in the drawing."""
    destinations = [arrow.destination for arrow in arrows.inside]
    destinations += [shared.arrows[0].destination for shared in arrows.around]
    return {f"to-{kind_of(role)}" for role in destinations} | ({"tunnel"} if joined else set())


def _stack(bands: Sequence[Band], x: float, y: float, columns: Columns, arrows: Traffic) -> list[Placed]:
    """Place the bands below each other, from (x, y) on."""
    placed: list[Placed] = []
    for band in bands:
        before = placed[-1].band if placed else None
        if band.in_region and not (before and before.in_region):
            y += _REGION_HEAD
        elif before and before.in_region and not band.in_region:
            y += PAD + (_CORRIDOR if band.role is Role.SITE_EDGE else 0)
        placed.append(place(band, x, y, columns, arrows.left(band.role), arrows.right(band.role)))
        y += placed[-1].box.height + GAP
    return placed


def _taps(placed: Sequence[Placed]) -> dict[str, list[Tap]]:
    taps: dict[str, list[Tap]] = {}
    for band in placed:
        for arrow, tap in band.inward.items():
            taps.setdefault(arrow, []).append(tap)
    return taps


def _inside(placed: Sequence[Placed], arrows: Traffic, x: float) -> Iterator[Group]:
    """Yield the arrows inside the cluster. x: the left edge of bands; the region's box starts `PAD` before it."""
    taps = _taps(placed)
    assigned: dict[str, Lane] = lanes.assign(taps)
    for arrow in arrows.inside:
        lane = assigned[arrow.id]
        at = x - PAD - LANE * (lane.number + 1)
        own = [(tap, x) for tap in taps[arrow.id]]
        yield lanes.line(arrow.id, kind_of(arrow.destination), arrow.about, lane, at, own)


def _region_top(placed: Sequence[Placed]) -> float:
    return next(band.box.y for band in placed if band.band.in_region) - _REGION_HEAD


def _region(cluster: Cluster, placed: Sequence[Placed], columns: Columns, x: float) -> Iterator[Group]:
    last = [band.box for band in placed if band.band.in_region][-1]
    top, bottom = _region_top(placed), last.y + last.height + PAD
    spec = cluster.spec
    name = f"Region {spec.control_plane.region} of {parts.CLOUD_NAMES[spec.control_plane.cloud]}"
    facts = f"network {spec.network.nodes} · links {spec.network.link_mtu} bytes"
    box = Box(x - PAD, top, columns.x + columns.width + 3 * PAD - x, bottom - top, "place")
    words = (Text(x, top + 22, name, "title"), Text(x, top + 38, facts, "fact"))
    yield Group("region", "part", f"{name}, {facts}", (box, *words))
    for zone in columns.zones:
        left = columns.of(zone)
        area = Box(left + 2, top + 48, columns.zone_width - 4, bottom - top - 54, "zone")
        label = Text(left + 10, top + 65, fit(f"zone {zone}", "zone", columns.zone_width - 20), "zone")
        yield Group(f"zone-{zone}", "part", f"zone {zone}", (area, label))


def _tunnels(placed: Sequence[Placed], joined: Sequence[Tunnel]) -> Iterator[Group]:
    """Yield the tunnels, from the lower edge of the gateway to the upper edge of the routers' band, above their router's card."""
    by_role = {band.band.role: band for band in placed}
    for tunnel in joined:
        gateway, edge = by_role[Role.VPN_GATEWAY], by_role[Role.SITE_EDGE]
        routers = list(edge.cards)
        number = routers.index(f"router-{tunnel.site}-{tunnel.router}")
        start, end = gateway.cards[f"gateway-end-{tunnel.gateway_end}"], edge.cards[routers[number]]
        row = sorted({card.y for card in edge.cards.values()}).index(end.y)
        below = start.x + start.width * (number + 1) / (len(routers) + 1)
        above = end.x + end.width / 2 + 24 * (tunnel.gateway_end - 0.5) + 8 * row
        line = Line(((below, gateway.box.y + gateway.box.height), (above, edge.box.y)))
        about = (
            f"Tunnel from end {tunnel.gateway_end} of the gateway ({tunnel.cloud.address}) to {tunnel.site} / "
            f"{tunnel.router} ({tunnel.edge.address}, public {tunnel.peer}): IKEv{tunnel.ike_version}, {tunnel.esp}, "
            f"MTU {tunnel.mtu}"
        )
        yield Group(f"tunnel-{tunnel.site}-{tunnel.router}-{tunnel.gateway_end}", "tunnel", about, (line,))


def _heading(title: str, about: str, width: float) -> tuple[Text, ...]:
    """Return the title and the first sentence about the drawing, in its upper left corner."""
    lines = [(line, "heading") for line in wrap(title, "heading", width)]
    lines += [(line, "fact") for line in wrap(about.split(". ")[0], "fact", width)]
    return tuple(Text(_MARGIN, _MARGIN + 16 + 20 * n, line, kind) for n, (line, kind) in enumerate(lines))


def _words(cluster: Cluster, arrows: Traffic, joined: Sequence[Tunnel]) -> tuple[str, str]:
    """Return the title, and the whole drawing in words: counts first, then every arrow."""
    spec = cluster.spec
    place = f"{parts.CLOUD_NAMES[spec.control_plane.cloud]}, region {spec.control_plane.region}"
    machines = f"{len(cluster.host_list()):,} machines at {', '.join(spec.sites)}"
    gpus = most_gpus(cluster)
    counts = [
        f"{spec.control_plane.api_servers} API servers, etcd main with {spec.etcd.main.members} members",
        f"etcd events with {spec.etcd.events.members}",
        *([f"up to {spec.cloud_workers:,} workers in the region"] if spec.cloud_workers else []),
        *([machines] if cluster.host_list() else []),
        *([f"{'up to ' * bool(spec.cloud_workers)}{gpus:,} GPUs"] if gpus else []),
        *([f"{len(joined)} tunnels"] if joined else []),
    ]
    sentences = [
        f"{arrow.destination} accepts {arrow.ports} from {', '.join(arrow.sources)}." for arrow in arrows.all()
    ]
    explained = "Arrows lead from the side that opens connections to the side that accepts them, with the ports."
    about = " ".join((f"{', '.join(counts)}.", explained, *sentences))
    return f"{cluster.name}: Kubernetes {spec.kubernetes.version} on {place}", about
