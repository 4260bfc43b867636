"""Workers: each by its state while they are few, and a line a pool with those that are not well where they are many.

What is wrong with all nodes of a site, or of the cluster, is told once: the way there is at fault, not the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubernetes import client

from clients.nodes import in_the_region, least_in_region
from clients.waiting import held_back, is_ready, verdict
from cluster import preflight
from cluster.spec import Cluster
from operations.drain import mark_of
from operations.status.model import Item, kubectl

LISTED = 20
"""Nodes that are listed each; of more, those that are not well, as many at most."""
REGION = "workers in the region"
"""Name of the item that counts them."""


@dataclass(frozen=True)
class Worker:
    """A node, a machine of the spec, or both. pool: "" where neither says. node: None for one that has not joined."""

    name: str
    pool: str
    site: str
    where: str
    node: client.V1Node | None

    @property
    def ready(self) -> bool:
        return self.node is not None and is_ready(self.node)


def nodes(cluster: Cluster, found: Sequence[client.V1Node]) -> Iterator[Item]:
    """found: all Nodes that the API has."""
    workers = _workers(cluster, found)
    joined = [worker for worker in workers if worker.node is not None]
    if len(joined) > 1 and not any(worker.ready for worker in joined):
        yield _all_lost(cluster, len(joined))
        return
    cut = _cut_off(joined)
    yield from (_site_lost(cluster, site, count) for site, count in cut.items())
    items = [(worker, item) for worker in workers if worker.site not in cut for item in [_item(cluster, worker)]]
    if len(workers) > LISTED:
        yield from _pools(workers)
        wrong = [item for _, item in items if not item.ok]
        yield from wrong[:LISTED]
        if len(wrong) > LISTED:
            more = kubectl(cluster.name, "get nodes")
            yield Item("nodes", "and more", False, f"{len(wrong) - LISTED} others are not well either", more)
    else:
        yield from (item for _, item in items)
    if least := least_in_region(cluster):
        count = sum(worker.ready for worker in workers if worker.where.startswith("in the region"))
        help_ = "" if count >= least else f"./menagerie up {cluster.name}"
        yield Item("nodes", REGION, count >= least, f"{count} Ready, of {least} at least", help_)


def _workers(cluster: Cluster, found: Sequence[client.V1Node]) -> list[Worker]:
    """By name: every machine of the spec, joined or not, and every node, expected or not."""
    by_name = {node.metadata.name: node for node in found}
    expected = {host.name: (pool, host) for pool, host in cluster.host_list()}
    in_region = in_the_region(cluster, found)
    workers = []
    for name in sorted({*by_name, *expected}):
        node = by_name.get(name)
        if name in expected:
            pool, host = expected[name]
            site = cluster.spec.pools[pool].site or ""
            workers.append(Worker(name, pool, site, f"{pool}, rack {host.rack}", node))
        elif node is not None and name in in_region:
            workers.append(Worker(name, "the region", "", _zone(node), node))
        else:
            workers.append(Worker(name, "", "", "not in the spec", node))
    return workers


def _all_lost(cluster: Cluster, count: int) -> Item:
    """One cause for all is likelier than one each; the controller manager evicts nothing while all zones are lost.

    kubernetes.io, "Nodes", "Rate limits on eviction".
    """
    detail = (
        f"all {count} nodes are NotReady together: taken for a fault of the control plane, not of the nodes. Their pods "
        "keep running, and nothing is evicted until nodes report again"
    )
    return Item("nodes", "all", False, detail, f"./menagerie up {cluster.name}")


def _cut_off(joined: Sequence[Worker]) -> dict[str, int]:
    """Site -> its nodes, of sites with several that are all NotReady."""
    at_sites: dict[str, list[Worker]] = {}
    for worker in joined:
        if worker.site:
            at_sites.setdefault(worker.site, []).append(worker)
    return {site: len(here) for site, here in at_sites.items() if len(here) > 1 and not any(w.ready for w in here)}


def _site_lost(cluster: Cluster, site: str, count: int) -> Item:
    detail = (
        f"site {site} looks cut off: all of its {count} nodes are NotReady. Their pods keep running, for a day at least"
    )
    joined = site in cluster.spec.sites and cluster.spec.sites[site].vpn is not None
    help_ = f"./menagerie {'vpn configure' if joined else 'configure'} {cluster.name} --dry-run"
    return Item("nodes", f"site {site}", False, detail, help_)


def _pools(workers: Sequence[Worker]) -> Iterator[Item]:
    """A line a pool; whose nodes are not well says so on lines of their own."""
    pools: Mapping[str, list[Worker]] = {worker.pool: [] for worker in workers if worker.pool}
    for worker in workers:
        if worker.pool:
            pools[worker.pool].append(worker)
    for pool, here in pools.items():
        states = {
            "Ready": sum(worker.ready for worker in here),
            "NotReady": sum(worker.node is not None and not worker.ready for worker in here),
            "not joined": sum(worker.node is None for worker in here),
            "out of service": sum(
                bool(worker.node and worker.node.spec and worker.node.spec.unschedulable) for worker in here
            ),
        }
        told = ", ".join(f"{count} {state}" for state, count in states.items() if count)
        yield Item("nodes", f"pool {pool}", True, f"{told}, of {len(here)}")


def _item(cluster: Cluster, worker: Worker) -> Item:
    name, node = worker.name, worker.node
    again = f"./menagerie configure {cluster.name} --limit {name}"
    if node is None:
        return Item("nodes", name, False, f"has not joined ({worker.where})", again)
    held = held_back(node)
    state, version = "Ready" if worker.ready else "NotReady", node.status.node_info.kubelet_version
    told = [f"no work yet: {held}"] if held else _told_by_preflight(node)
    detail = ", ".join((state, version, worker.where, *told, *_cordoned(node)))
    if not worker.pool:
        return Item("nodes", name, False, detail, kubectl(cluster.name, f"delete node {name}"))
    ok = worker.ready and not held
    at_site = again if worker.site else kubectl(cluster.name, f"describe node {name}")
    return Item("nodes", name, ok, detail, "" if ok else at_site)


def _cordoned(node: client.V1Node) -> list[str]:
    """By whom, where a verb did it. Somebody wants it so, so the node is none the less well."""
    mark = mark_of(node)
    if mark:
        return [f"out of service by {mark.by} since {mark.since}: {mark.why}"]
    return ["cordoned"] if node.spec and node.spec.unschedulable else []


def _told_by_preflight(node: client.V1Node) -> list[str]:
    """What a host that takes work says of itself beside that it is as expected: Xids to keep an eye on."""
    found = verdict(node)
    said = found.message if found else ""
    return [f"preflight: {said}"] if said and not said.startswith(preflight.AS_EXPECTED) else []


def _zone(node: client.V1Node) -> str:
    return f"in the region, zone {(node.metadata.labels or {}).get('topology.kubernetes.io/zone', 'unknown')}"
