"""Capacity of a fleet: what is free, what is on its way, what could be added, and where a job would start soonest or cheapest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cluster.allocations import TEAM_KEY
from cluster.autoscaler import Autoscaler
from cluster.pools import POOL_LABEL
from controllers.autoscaler.gang import Membership
from controllers.autoscaler.keys import CLOUD, GPU_KIND, REGION_LABEL
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.reconcile import alive, takes_work
from controllers.autoscaler.snapshot import planner_input
from controllers.autoscaler.world import Supply, Waiting, World
from controllers.planner import Fate, Operator, Plan, Requirement, Shape, Spot, Toleration, plan
from controllers.planner.feasibility import how_many
from controllers.planner.resources import CPU, GPU, MEMORY, Resources

JOB = "the job"
_NAMESPACE = "capacity"


@dataclass(frozen=True)
class Row:
    """The capacity of a pool. gpus: 0 for a pool without GPUs; then only hosts matter.

    free_gpus: on hosts that take work. free_hosts: completely free hosts. coming: machines that boot or were ordered.
    more: machines that could still be added. price: dollars an hour of one machine.
    """

    cluster: str
    pool: str
    gpu_kind: str
    hosts: int
    free_hosts: int
    gpus: int
    free_gpus: int
    coming: int
    coming_gpus: int
    more: int
    more_gpus: int
    price: float
    spot: bool
    boot_s: int
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Job:
    """Pods that start together. gpus, cpus, memory_gib: per pod. gpu_kind: "" for any. team: "" for only hosts of no team."""

    pods: int
    gpus: int = 0
    cpus: float = 1.0
    memory_gib: float = 1.0
    gpu_kind: str = ""
    spot: Spot = Spot.ANY
    team: str = ""
    within: str | None = None

    def shape(self, pool: str = "") -> Shape:
        """Return the shape of the job's pods. pool: the only one that they may use, "" for any."""
        needs = [Requirement(POOL_LABEL, Operator.IN, (pool,))] if pool else []
        needs += [Requirement(GPU_KIND, Operator.IN, (self.gpu_kind,))] if self.gpu_kind else []
        amounts = {GPU: self.gpus, CPU: round(self.cpus * 1000), MEMORY: round(self.memory_gib * 1024)}
        tolerations = [Toleration(TEAM_KEY, self.team)] if self.team else []
        # The usual taint of device plugins; kubernetes.io, "Taints and Tolerations", dedicated nodes and special hardware.
        tolerations += [Toleration(GPU)] if self.gpus else []
        return Shape(
            Resources.of(amounts), (tuple(needs),) if needs else (), tuple(tolerations), team=self.team, spot=self.spot
        )


@dataclass(frozen=True)
class Offer:
    """What one pool offers the job.

    starts_s: seconds until its hosts are ready, None if it waits or never starts. dollars: hourly cost of the hosts added for it.
    """

    cluster: str
    pool: str
    cloud: str
    region: str
    starts_s: int | None
    dollars: float
    hosts: int
    reason: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rows(cluster: str, world: World, memory: Memory) -> list[Row]:
    """Return the capacity of each pool of a cluster."""
    return [_row(cluster, name, supply, world, memory) for name, supply in sorted(world.supplies.items())]


def _row(cluster: str, name: str, supply: Supply, world: World, memory: Memory) -> Row:
    nodes = [node for node in world.nodes if node.pool == name and takes_work(node) and not node.cordoned]
    gpus = supply.pool.room[GPU]
    group = world.groups.get(name)
    coming = 0
    if group:
        working = {node.name for node in world.nodes if node.pool == name and takes_work(node)}
        coming = max(group.size, len(alive(group))) - sum(machine.node in working for machine in alive(group))
    more = max(0, supply.pool.most - len(nodes) - coming) if supply.grows else 0
    rest = memory.resting(name, world.now_s)
    return Row(
        cluster,
        name,
        dict(supply.pool.labels).get(GPU_KIND, ""),
        len(nodes),
        sum(not node.pods for node in nodes),
        gpus * len(nodes),
        sum(node.free()[GPU] for node in nodes),
        coming,
        coming * gpus,
        0 if rest else more,
        0 if rest else more * gpus,
        supply.pool.price / 1e6,
        supply.pool.spot,
        supply.pool.boot_s,
        f"not grown now: {rest.why}" if rest else supply.note,
    )


def offers(cluster: str, world: World, memory: Memory, settings: Autoscaler, job: Job) -> list[Offer]:
    """Return what each pool of a cluster would do with the job, behind everything that already waits there."""
    able = [name for name, each in sorted(world.supplies.items()) if how_many(job.shape(), each.pool)]
    return [_offer(cluster, name, world, memory, settings, job) for name in able]


def _offer(cluster: str, pool: str, world: World, memory: Memory, settings: Autoscaler, job: Job) -> Offer:
    gang = Membership(f"{_NAMESPACE}/{JOB}", job.pods, job.within) if job.pods > 1 or job.within else None
    since_s = int(world.now_s)
    shape = job.shape(pool)
    job_pods = tuple(
        Waiting(f"{_NAMESPACE}/{JOB}-{at}", f"{JOB}-{at}", shape, since_s, gang=gang) for at in range(job.pods)
    )
    at_once = settings.model_copy(update={"settle": 0})
    question = planner_input(replace(world, waiting=(*world.waiting, *job_pods)), memory, at_once)
    planned = plan(replace(question.snapshot, missing=world.missing))
    labels = dict(world.supplies[pool].pool.labels)
    starts_s, dollars, hosts = _cost(planned, question.coming, job_pods, world.supplies)
    reason = planned.verdicts[job_pods[0].name].reason
    return Offer(cluster, pool, labels.get(CLOUD, ""), labels.get(REGION_LABEL, ""), starts_s, dollars, hosts, reason)


def _cost(
    planned: Plan, coming: Mapping[str, object], job_pods: Iterable[Waiting], supplies: Mapping[str, Supply]
) -> tuple[int | None, float, int]:
    """Return (seconds until all these pods have hosts, hourly dollars of the hosts added, number of hosts added)."""
    names = {pod.name for pod in job_pods}
    verdicts = [planned.verdicts[name] for name in names]
    if any(verdict.fate not in (Fate.ROOM, Fate.NEW) for verdict in verdicts):
        return None, 0.0, 0
    added = [host for host in planned.hosts if names.intersection(host.pods)]
    waits_s = [supplies[host.pool].pool.boot_s for host in added]
    waits_s += [supplies[pool].pool.boot_s for verdict in verdicts for pool in _booting(verdict.host, coming)]
    return max(waits_s, default=0), sum(supplies[host.pool].pool.price for host in added) / 1e6, len(added)


def _booting(host: str, coming: Mapping[str, object]) -> Iterator[str]:
    """Yield the pool of a host that is on its way; nothing for an existing host."""
    machine = coming.get(host)
    if isinstance(machine, tuple):
        yield str(machine[0])


def soonest(offers: Sequence[Offer]) -> Offer | None:
    able = [each for each in offers if each.starts_s is not None]
    return min(able, key=lambda each: (each.starts_s or 0, each.dollars), default=None)


def cheapest(offers: Sequence[Offer]) -> Offer | None:
    able = [each for each in offers if each.starts_s is not None]
    return min(able, key=lambda each: (each.dollars, each.starts_s or 0), default=None)
