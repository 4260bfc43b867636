"""The state of each part of a cluster's drawing, from its status and its nodes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cluster.spec import Cluster
from components.drawing.live import MEANINGS, Health, Live, coloured, together
from components.drawing.sites import rack_cards
from components.drawing.svg import svg
from controllers.web.facts import Drawn, NodeState, Spec
from etcd.members import members
from network.addresses import ROLES, plan
from operations.status.model import Status, StatusItem

_MOST_WORDS = 3
"""Largest number of items that are named in the words of a part."""


def drawn(spec: Spec, status: Status | None, nodes: Sequence[NodeState] | None) -> Drawn:
    """Return the cluster's drawing with these states. None for what was not read."""
    live = states(spec.cluster, status, nodes)
    parts = tuple((group.id, live[group.id]) for group in spec.drawing.groups if group.id in live)
    return Drawn(svg(coloured(spec.drawing, live), styled=False), parts)


def states(cluster: Cluster, status: Status | None, nodes: Sequence[NodeState] | None) -> dict[str, Live]:
    """Return ID of a group of the drawing -> its state. None for what was not read: its parts are left out."""
    return {
        **(dict(_of_control_plane(cluster, status)) if status else {}),
        **(dict(_of_workers(cluster, nodes)) if nodes is not None else {}),
    }


def _of_control_plane(cluster: Cluster, status: Status) -> Iterator[tuple[str, Live]]:
    """Yield the states of load balancer, API servers, etcds and edge routers, as far as the status has items about them."""
    by_name = {(item.group, item.name): item for item in status.items}
    servers = [item for item in status.items if item.group == "API servers" and item.name != "load balancer"]
    for item in servers:
        yield f"host-{item.name}", _of_items(f"API server {item.name}", [item])
    api = [item for item in status.items if item.group == "api"]
    yield from _band("api-servers", "API servers", [*servers, *api])
    if silent := by_name.get(("API servers", "load balancer")):
        yield "band-balancer", _of_items("load balancer", [silent])
    for role in ROLES:
        own = [item for item in status.items if item.group == "etcds" and item.name.endswith((f" {role}", "agents"))]
        for member in members(cluster, role, plan(cluster)):
            named = [item for item in status.items if item.group == "etcds" and item.name.split(",")[0] == member.name]
            if named:
                yield f"host-{member.host}", _of_items(f"etcd member {member.name}", named)
                own += named
        yield from _band(f"etcd-{role}", f"etcd {role}", own)
    yield from _of_routers(cluster, status)


def _of_routers(cluster: Cluster, status: Status) -> Iterator[tuple[str, Live]]:
    tunnels = [item for item in status.items if item.group == "tunnels"]
    for site, settings in cluster.spec.sites.items():
        for router in settings.vpn.routers if settings.vpn else ():
            own = [item for item in tunnels if item.name.split(",")[0] == f"{site}-{router}"]
            if own:
                yield f"router-{site}-{router}", _of_items(f"edge router {site} / {router}", own)


def _band(name: str, what: str, items: Sequence[StatusItem]) -> Iterator[tuple[str, Live]]:
    if items:
        yield f"band-{name}", _of_items(what, items)


def _of_items(name: str, items: Sequence[StatusItem]) -> Live:
    """Return the state of a part from its lines of the status. Its words are those of lines that are not ok."""
    wrong = [item for item in items if not item.ok]
    health = together([Health.HEALTHY if item.ok else Health.DOWN for item in items])
    listed = "; ".join(f"{item.name}: {item.detail}" for item in wrong[:_MOST_WORDS])
    more = f"; and {len(wrong) - _MOST_WORDS} more" if len(wrong) > _MOST_WORDS else ""
    return Live(name, health, listed + more)


def _of_workers(cluster: Cluster, nodes: Sequence[NodeState]) -> Iterator[tuple[str, Live]]:
    """Yield the states of pools and racks."""
    by_pool: dict[str, list[NodeState]] = {name: [] for name in cluster.spec.pools}
    for node in nodes:
        by_pool.setdefault(node.pool, []).append(node)
    for pool, own in by_pool.items():
        if own:
            yield f"pool-{pool}", _of_nodes(f"pool {pool}", own)
    by_name = {node.name: node for node in nodes}
    racks: dict[tuple[str, str], list[NodeState]] = {}
    for pool, host in cluster.host_list():
        site = cluster.spec.pools[pool].site
        if site and host.name in by_name:
            racks.setdefault((site, host.rack), []).append(by_name[host.name])
    for site, settings in cluster.spec.sites.items():
        shared: dict[str, list[str]] = {}
        for rack, card in rack_cards(site, settings).items():
            shared.setdefault(card, []).append(rack)
        for card, names in shared.items():
            here = [node for rack in names for node in racks.get((site, rack), ())]
            if here:
                ends = names[0] if len(names) == 1 else f"{names[0]}–{names[-1]}"
                yield card, _of_nodes(f"{site}, rack {ends}", here)


def _of_nodes(name: str, nodes: Sequence[NodeState]) -> Live:
    counts = Counter(node.words for node in nodes)
    words = ", ".join(f"{count:,} {state}" for state, count in counts.most_common())
    return Live(name, together([node.health for node in nodes]), f"{words}, of {len(nodes):,}")


def summary(nodes: Iterable[NodeState]) -> str:
    """Return how many nodes have which health: ``7,480 healthy, 20 down``."""
    counts = Counter(node.health for node in nodes)
    return ", ".join(f"{counts[health]:,} {MEANINGS[health]}" for health in Health if counts[health]) or "no nodes"
