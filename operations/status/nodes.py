"""Status of workers: a line for each if there are few; otherwise a line per pool and one for each unhealthy worker.

If all nodes at a site, or in the cluster, have failed, that is one line: the connection is at fault, not the nodes.
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
from operations.status.model import StatusItem, kubectl

LISTED = 20
"""Up to this number, all nodes are listed. If there are more, at most so many unhealthy ones are."""
REGION = "workers in the region"
"""Name of the item with their count."""


@dataclass(frozen=True)
class Worker:
    """A node, a machine in the spec, or both. pool: "" if unknown. node: None if it has not joined."""

    name: str
    pool: str
    site: str
    where: str
    node: client.V1Node | None

    @property
    def ready(self) -> bool:
        return self.node is not None and is_ready(self.node)


def nodes(cluster: Cluster, api_nodes: Sequence[client.V1Node]) -> Iterator[StatusItem]:
    """Yield the items. api_nodes: all Nodes in the API."""
    workers = _workers(cluster, api_nodes)
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
            yield StatusItem("nodes", "and more", False, f"{len(wrong) - LISTED} more are unhealthy", more)
    else:
        yield from (item for _, item in items)
    if least := least_in_region(cluster):
        count = sum(worker.ready for worker in workers if worker.where.startswith("in the region"))
        help_ = "" if count >= least else f"./menagerie up {cluster.name}"
        yield StatusItem("nodes", REGION, count >= least, f"{count} Ready, at least {least} required", help_)


def _workers(cluster: Cluster, api_nodes: Sequence[client.V1Node]) -> list[Worker]:
    """Return every machine in the spec, joined or not, and every node, expected or not, by name."""
    by_name = {node.metadata.name: node for node in api_nodes}
    expected = {host.name: (pool, host) for pool, host in cluster.host_list()}
    in_region = in_the_region(cluster, api_nodes)
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


def _all_lost(cluster: Cluster, count: int) -> StatusItem:
    """Return one item for all nodes: a common cause is more likely than many single ones.

    The controller manager evicts nothing while all zones are unhealthy: kubernetes.io, "Nodes", "Rate limits on eviction".
    """
    detail = (
        f"all {count} nodes are NotReady together: treated as a fault of the control plane, not of the nodes. Their pods "
        "keep running, and nothing is evicted until nodes report again"
    )
    return StatusItem("nodes", "all", False, detail, f"./menagerie up {cluster.name}")


def _cut_off(joined: Sequence[Worker]) -> dict[str, int]:
    """Return site -> number of nodes, for sites with several nodes that are all NotReady."""
    at_sites: dict[str, list[Worker]] = {}
    for worker in joined:
        if worker.site:
            at_sites.setdefault(worker.site, []).append(worker)
    return {site: len(here) for site, here in at_sites.items() if len(here) > 1 and not any(w.ready for w in here)}


def _site_lost(cluster: Cluster, site: str, count: int) -> StatusItem:
    detail = (
        f"site {site} looks cut off: all of its {count} nodes are NotReady. Their pods keep running for at least a day"
    )
    joined = site in cluster.spec.sites and cluster.spec.sites[site].vpn is not None
    help_ = f"./menagerie {'vpn configure' if joined else 'configure'} {cluster.name} --dry-run"
    return StatusItem("nodes", f"site {site}", False, detail, help_)


def _pools(workers: Sequence[Worker]) -> Iterator[StatusItem]:
    """Yield one item per pool. They are always ok: unhealthy nodes have their own items."""
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
        counts = ", ".join(f"{count} {state}" for state, count in states.items() if count)
        yield StatusItem("nodes", f"pool {pool}", True, f"{counts}, of {len(here)}")


def _item(cluster: Cluster, worker: Worker) -> StatusItem:
    name, node = worker.name, worker.node
    again = f"./menagerie configure {cluster.name} --limit {name}"
    if node is None:
        return StatusItem("nodes", name, False, f"has not joined ({worker.where})", again)
    held = held_back(node)
    state, version = "Ready" if worker.ready else "NotReady", node.status.node_info.kubelet_version
    notes = [f"no pods yet: {held}"] if held else _preflight_notes(node)
    detail = ", ".join((state, version, worker.where, *notes, *_cordoned(node)))
    if not worker.pool:
        return StatusItem("nodes", name, False, detail, kubectl(cluster.name, f"delete node {name}"))
    ok = worker.ready and not held
    at_site = again if worker.site else kubectl(cluster.name, f"describe node {name}")
    return StatusItem("nodes", name, ok, detail, "" if ok else at_site)


def _cordoned(node: client.V1Node) -> list[str]:
    """Return why it is cordoned, with the verb that did it. A cordon is intended, so it does not make the node unhealthy."""
    mark = mark_of(node)
    if mark:
        return [f"out of service since {mark.since} ({mark.by}: {mark.why})"]
    return ["cordoned"] if node.spec and node.spec.unschedulable else []


def _preflight_notes(node: client.V1Node) -> list[str]:
    """Return preflight's notes about a node in service, such as Xids to watch."""
    result = verdict(node)
    message = result.message if result else ""
    return [f"preflight: {message}"] if message and not message.startswith(preflight.AS_EXPECTED) else []


def _zone(node: client.V1Node) -> str:
    return f"in the region, zone {(node.metadata.labels or {}).get('topology.kubernetes.io/zone', 'unknown')}"
