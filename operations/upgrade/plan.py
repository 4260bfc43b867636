"""What is to be done, in which order, from what runs and what the spec says. Pure.

Up: API servers, what the cluster is said to run and kube-proxy, workers. Back: the other way round, for no part may be newer
than an API server. Containerd is bound to no version of Kubernetes, so it has no say in the order: it changes with the workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from cluster.releases import NodePrograms, Part, is_back, numbers, wrong_skew, wrong_step
from cluster.spec import Cluster
from operations.upgrade.versions import Running

GROUP = "api-servers"
"""Stands for API servers of a cloud, whose instance group replaces them."""


class Stage(StrEnum):
    """What is done one after another."""

    SERVERS = "API servers"
    ADDONS = "kube-proxy"
    REGION = "workers in the region"
    WORKERS = "workers at sites"


@dataclass(frozen=True)
class Plan:
    """Hosts that do not run what is wanted yet, by stage. limited: whether workers were left out that do not either.

    wanted: version of Kubernetes. servers: names, or GROUP. by_the_cloud: nodes in the region of a cloud, which no verb here
    replaces. unwell: what is not well, and why, of an upgrade that has begun: it is not waited for.
    """

    cluster: str
    wanted: str
    running: Running
    servers: tuple[str, ...] = ()
    addons: bool = False
    region: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    by_the_cloud: tuple[str, ...] = ()
    limited: bool = False
    unwell: Mapping[str, str] = field(default_factory=dict)

    @property
    def on_nodes(self) -> NodePrograms:
        """What every node shall run."""
        return NodePrograms.beside(self.wanted)

    @property
    def goal(self) -> str:
        """What is to be brought about: ``Kubernetes 1.36.4``, ``containerd 2.3.4``, or both; both where nothing is left to do."""
        nodes = (self.running.nodes[name] for name in (*self.region, *self.workers))
        others = {other for each in nodes for other in each.others(self.on_nodes)}
        if not others and not self.servers and not self.addons:
            return f"Kubernetes {self.on_nodes}"
        told = [f"Kubernetes {self.wanted}"] if self.servers or self.addons or "kubelet" in others else []
        return " and ".join([*told, *([f"containerd {self.on_nodes.containerd}"] if "containerd" in others else [])])

    @property
    def is_back(self) -> bool:
        """Whether some part of Kubernetes is newer than the spec says."""
        return bool(self.running.newest) and is_back(self.running.newest, self.wanted)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In order, those with something to do."""
        there = {
            Stage.SERVERS: self.servers,
            Stage.ADDONS: self.addons,
            Stage.REGION: self.region,
            Stage.WORKERS: self.workers,
        }
        order = tuple(reversed(Stage)) if self.is_back else tuple(Stage)
        return tuple(stage for stage in order if there[stage])

    @property
    def is_begun(self) -> bool:
        """Whether API servers of two releases run: `up` refuses then, and this is how the cluster gets out of it."""
        return bool(self.servers) and self.wanted in self.running.servers

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.stages

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["running"] |= {name: sorted(getattr(self.running, name)) for name in ("answers", "region", "begun")}
        return {
            **found,
            "on_nodes": asdict(self.on_nodes),
            "back": self.is_back,
            "stages": [stage.value for stage in self.stages],
        }


def plan(
    cluster: Cluster, running: Running, pools: Collection[str] | None = None, *, control_plane_only: bool = False
) -> Plan:
    """pools: those whose workers are to be done, None for all. control_plane_only: none of them."""
    wanted = cluster.spec.kubernetes.version
    at_sites = {host.name: pool for pool, host in cluster.host_list()}
    chosen = [] if control_plane_only else [name for name, pool in at_sites.items() if pools is None or pool in pools]
    stale = {name for name, found in running.nodes.items() if found.others(NodePrograms.beside(wanted))} | running.begun
    region = tuple(sorted(stale & running.region)) if pools is None and not control_plane_only else ()
    workers = tuple(name for name in chosen if name in stale)
    left = stale & (set(at_sites) | running.region) - {*workers, *region}
    return Plan(
        cluster.name,
        wanted,
        running,
        servers=_servers(running, wanted),
        addons=(running.said, running.proxy) != (wanted, wanted),
        region=region if cluster.is_lab else (),
        workers=workers,
        by_the_cloud=() if cluster.is_lab else region,
        limited=bool(left),
    )


def _servers(running: Running, wanted: str) -> tuple[str, ...]:
    if running.hosts:
        # First those that do not answer: the others are only replaced while all is well.
        stale = [(bool(version), name) for name, version in running.hosts.items() if version != wanted]
        return tuple(name for _, name in sorted(stale))
    return () if running.answers == {wanted} else (GROUP,)


def wrong(plan: Plan) -> Iterator[str]:
    """Why the version skew policy forbids what is planned."""
    running, wanted = plan.running, plan.wanted
    for now in sorted(running.servers, key=numbers):
        if why := wrong_step(now, wanted):
            yield f"API server {why}"
    after = {wanted} if plan.is_back else {wanted, *running.servers}
    left = set(running.nodes) - {*plan.workers, *plan.region}
    # On the way back they are done before the API servers, on the way up they stay as they are for so long.
    kept = left if plan.is_back else set(running.nodes)
    for name in sorted(kept):
        kubelet = running.nodes[name].kubelet
        if kubelet and (why := wrong_skew(Part.KUBELET, kubelet, after)):
            yield f"node {name}: {why}{_way_out(plan, name)}"
    if running.proxy and not plan.is_back and (why := wrong_skew(Part.KUBE_PROXY, running.proxy, after)):
        yield why


def _way_out(plan: Plan, name: str) -> str:
    if plan.is_back:
        return (
            "; take it back first, with its pool"
            if name not in plan.by_the_cloud
            else '; its machine is the cloud\'s: see "Limits of a rollback" in docs/how-to/upgrade.md'
        )
    return "; it is to be brought up first, within the release that runs"
