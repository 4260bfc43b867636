"""Plans an upgrade: what to do in which order, from the running versions and the spec. Pure.

Upgrade: API servers, kubeadm's record and kube-proxy, workers. Rollback: the reverse order, because no part may be newer
than an API server. Containerd is not tied to a version of Kubernetes and does not affect the order: it changes with the
workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from cluster.releases import NodePrograms, Part, is_back, numbers, wrong_skew, wrong_step
from cluster.spec import Cluster
from operations.upgrade.parts import RunningVersions

GROUP = "api-servers"
"""Stands for a cloud's API servers, which their instance group replaces."""


class UpgradeStage(StrEnum):
    """The stages of an upgrade, in order."""

    SERVERS = "API servers"
    ADDONS = "kube-proxy"
    REGION = "workers in the region"
    WORKERS = "workers at sites"


@dataclass(frozen=True)
class UpgradePlan:
    """Hosts that do not have the right versions yet, by stage. limited: whether such workers were left out.

    target: version of Kubernetes. servers: names, or GROUP. by_the_cloud: nodes in a cloud's region, which no verb here
    replaces. `unwell`: item -> why it is unhealthy, in an upgrade that has started: it is not waited for.
    """

    cluster: str
    target: str
    running: RunningVersions
    servers: tuple[str, ...] = ()
    addons: bool = False
    region: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    by_the_cloud: tuple[str, ...] = ()
    limited: bool = False
    unwell: Mapping[str, str] = field(default_factory=dict)

    @property
    def on_nodes(self) -> NodePrograms:
        """What every node must run."""
        return NodePrograms.beside(self.target)

    @property
    def goal(self) -> str:
        """The target for people: ``Kubernetes 1.36.4``, ``containerd 2.3.4``, or both; both if nothing is left to do."""
        nodes = (self.running.nodes[name] for name in (*self.region, *self.workers))
        others = {other for node_programs in nodes for other in node_programs.others(self.on_nodes)}
        if not others and not self.servers and not self.addons:
            return f"Kubernetes {self.on_nodes}"
        parts = [f"Kubernetes {self.target}"] if self.servers or self.addons or "kubelet" in others else []
        return " and ".join([*parts, *([f"containerd {self.on_nodes.containerd}"] if "containerd" in others else [])])

    @property
    def is_back(self) -> bool:
        """Whether some part of Kubernetes is newer than in the spec."""
        return bool(self.running.newest) and is_back(self.running.newest, self.target)

    @property
    def stages(self) -> tuple[UpgradeStage, ...]:
        """The stages with something to do, in order."""
        hosts_by_stage = {
            UpgradeStage.SERVERS: self.servers,
            UpgradeStage.ADDONS: self.addons,
            UpgradeStage.REGION: self.region,
            UpgradeStage.WORKERS: self.workers,
        }
        order = tuple(reversed(UpgradeStage)) if self.is_back else tuple(UpgradeStage)
        return tuple(stage for stage in order if hosts_by_stage[stage])

    @property
    def is_begun(self) -> bool:
        """Whether API servers of two releases run. `up` refuses then; this upgrade must be finished."""
        return bool(self.servers) and self.target in self.running.servers

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.stages

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        document = {"cluster": fields.pop("cluster"), "wanted": fields.pop("target"), **fields}
        document["running"] |= {name: sorted(getattr(self.running, name)) for name in ("answers", "region", "begun")}
        return {
            **document,
            "on_nodes": asdict(self.on_nodes),
            "back": self.is_back,
            "stages": [stage.value for stage in self.stages],
        }


def plan(
    cluster: Cluster,
    running: RunningVersions,
    pools: Collection[str] | None = None,
    *,
    control_plane_only: bool = False,
) -> UpgradePlan:
    """Plan the upgrade. pools: whose workers to upgrade, None for all. control_plane_only: no workers."""
    version = cluster.spec.kubernetes.version
    at_sites = {host.name: pool for pool, host in cluster.host_list()}
    chosen = [] if control_plane_only else [name for name, pool in at_sites.items() if pools is None or pool in pools]
    stale = {
        name for name, node_programs in running.nodes.items() if node_programs.others(NodePrograms.beside(version))
    } | running.begun
    region = tuple(sorted(stale & running.region)) if pools is None and not control_plane_only else ()
    workers = tuple(name for name in chosen if name in stale)
    left = stale & (set(at_sites) | running.region) - {*workers, *region}
    return UpgradePlan(
        cluster.name,
        version,
        running,
        servers=_servers(running, version),
        addons=(running.said, running.proxy) != (version, version),
        region=region if cluster.is_lab else (),
        workers=workers,
        by_the_cloud=() if cluster.is_lab else region,
        limited=bool(left),
    )


def _servers(running: RunningVersions, target: str) -> tuple[str, ...]:
    if running.hosts:
        # First those that do not respond: the others are replaced only while everything is healthy.
        stale = [(bool(version), name) for name, version in running.hosts.items() if version != target]
        return tuple(name for _, name in sorted(stale))
    return () if running.answers == {target} else (GROUP,)


def wrong(plan: UpgradePlan) -> Iterator[str]:
    """Yield why the version skew policy forbids the plan."""
    running, version = plan.running, plan.target
    for now in sorted(running.servers, key=numbers):
        if why := wrong_step(now, version):
            yield f"API server {why}"
    after = {version} if plan.is_back else {version, *running.servers}
    left = set(running.nodes) - {*plan.workers, *plan.region}
    # In a rollback they are done before the API servers; in an upgrade they keep their version meanwhile.
    kept = left if plan.is_back else set(running.nodes)
    for name in sorted(kept):
        kubelet = running.nodes[name].kubelet
        if kubelet and (why := wrong_skew(Part.KUBELET, kubelet, after)):
            yield f"node {name}: {why}{_way_out(plan, name)}"
    if running.proxy and not plan.is_back and (why := wrong_skew(Part.KUBE_PROXY, running.proxy, after)):
        yield why


def _way_out(plan: UpgradePlan, name: str) -> str:
    if plan.is_back:
        return (
            "; roll it back first, with its pool"
            if name not in plan.by_the_cloud
            else '; the cloud manages its machine: see "Limits of a rollback" in docs/how-to/upgrade.md'
        )
    return "; upgrade it first, within the current release"
