"""Builders of a small cluster: pools, hosts, waiting pods, and passes over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cluster.autoscaler import Autoscaler
from controllers.autoscaler.decide import decide
from controllers.autoscaler.decision import Pass
from controllers.autoscaler.gang import NO_GANGS, Gangs, Membership
from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.pod_requests import Choices
from controllers.autoscaler.pods import waiting
from controllers.autoscaler.simulate.run import Setting
from controllers.autoscaler.world import BY, Node, Resident, Supply, Waiting, World
from controllers.planner import PoolSupply, Shape
from controllers.planner.resources import CPU, GPU, MEMORY, PODS, Resources
from controllers.planner.supply import labels
from operations.breaker import ClusterHealth, Limits, NodeHealth

NOW_S = 1_795_000_000.0
LIMITS = Limits(
    {"cpu": "40%", "gpu": "40%", "spot": "40%", "site": "40%"}, "50%", 3600.0, "./menagerie repair lab --max-removal"
)
CHOICES = Choices({}, {}, 1.0)


def supply(name: str, cpus: int = 8, gpus: int = 0, price: float = 1.0, most: int = 10, **more: Any) -> Supply:
    room = Resources.of({CPU: cpus * 1000, MEMORY: cpus * 4096, GPU: gpus, PODS: 110})
    return Supply(PoolSupply(name, room, round(price * 1e6), most, labels({"menagerie/pool": name}), **more), gpus > 0)


CPU_POOL = supply("cpu", boot_s=100)
GPU_POOL = supply("gpu", cpus=64, gpus=8, price=30.0, most=8, boot_s=540)
SPOT_POOL = supply("spot", cpus=64, gpus=8, price=10.0, most=8, boot_s=540, spot=True)


def pod_document(name: str, cpus: float = 1, gpus: int = 0, age_s: float = 60, **more: Any) -> dict[str, Any]:
    """Return a pod as the API would. more: annotations, nodeSelector, tolerations, affinity, owner, volumes, containers."""
    requests: dict[str, str] = {"cpu": str(cpus)} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    stamp = datetime.fromtimestamp(NOW_S - age_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    owner = more.pop("owner", "Job")
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "creationTimestamp": stamp,
        "annotations": more.pop("annotations", {}),
        "labels": more.pop("labels", {}),
        "ownerReferences": [{"kind": owner, "controller": True}] if owner else [],
    }
    spec = {"containers": [{"resources": {"requests": requests}}], **more}
    return {"metadata": metadata, "spec": spec, "status": {}}


def pods(name: str, count: int = 1, gangs: Gangs = NO_GANGS, **more: Any) -> tuple[Waiting, ...]:
    documents = [pod_document(f"{name}-{at}" if count > 1 else name, **more) for at in range(count)]
    return tuple(waiting(each, CHOICES, gangs) for each in documents)


def gang(name: str, count: int, size: int | None = None, **more: Any) -> tuple[Waiting, ...]:
    gangs = {f"default/{name}": Membership(f"default/{name}", size or count)}
    return pods(name, count, gangs, schedulingGroup={"podGroupName": name}, **more)


def resident(name: str, cpus: int = 1, **more: Any) -> Resident:
    return Resident(f"default/{name}", Shape(Resources.of({CPU: cpus * 1000})), **more)


def node(name: str, pool: Supply = CPU_POOL, *residents: Resident, **more: Any) -> Node:
    return Node(name, pool.pool.name, pool.pool.room, residents=residents, **more)


def world(
    nodes: Sequence[Node] = (),
    waits: Sequence[Waiting] = (),
    supplies: Sequence[Supply] = (CPU_POOL,),
    now_s: float = NOW_S,
    **more: Any,
) -> World:
    """Return a world in which every node is a running machine of its pool's group. more: `groups`, `fleet` and fields of the world."""
    groups: dict[str, Group] = {}
    for each in supplies:
        own = [node for node in nodes if node.pool == each.pool.name]
        machines = tuple(Machine(f"i-{node.name}", node.name, "running") for node in own)
        groups[each.pool.name] = Group(each.pool.name, len(own), 0, each.pool.most, machines)
    groups |= more.pop("groups", {})
    members = tuple(
        NodeHealth(node.name, node.pool, ready=node.ready, healthy=node.ready, out=bool(node.mark), lease_at=now_s)
        for node in nodes
    )
    fleet = more.pop("fleet", ClusterHealth(members, now_s))
    return World(now_s, {each.pool.name: each for each in supplies}, groups, tuple(nodes), tuple(waits), fleet, **more)


def one_pass(world_: World, memory: Memory | None = None, **settings: Any) -> Pass:
    return decide(world_, memory or Memory(), Autoscaler(**settings), LIMITS)


def later(world_: World, seconds: float, **more: Any) -> World:
    """Return the same world some seconds later, with fresh leases of all nodes."""
    now_s = world_.now_s + seconds
    members = tuple(replace(each, lease_at=now_s) for each in world_.fleet.members)
    return replace(world_, now_s=now_s, fleet=replace(world_.fleet, members=members, now=now_s), **more)


def acts(result: Pass) -> list[tuple[str, str, int | str]]:
    return [(str(each.act), each.pool, each.size or each.node or each.machine) for each in result.decisions]


def setting(supplies: Sequence[Supply], least: Mapping[str, int] | None = None, **settings: Any) -> Setting:
    named = {each.pool.name: each for each in supplies}
    elsewhere = {f"site-{at}": "site" for at in range(4)}
    return Setting(named, dict(least or {}), Autoscaler(**settings), LIMITS, elsewhere)


def marked(host: Node) -> Node:
    return replace(host, cordoned=True, mark=BY)
