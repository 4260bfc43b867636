"""Scale-in: which hosts are removed, at which step each removal is, and why all other hosts stay. Pure.

A host is removed in steps, one per pass, each after a new look: cordoned with a mark, drained, its machine given back, its Node
deleted. A host that is needed after all, or that gets a pod that must stay, returns to service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.autoscaler import Autoscaler
from cluster.quantities import share_of
from controllers.autoscaler.decision import Act, Decision
from controllers.autoscaler.groups import Machine
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.reconcile import Late, alive
from controllers.autoscaler.snapshot import PlannerInput
from controllers.autoscaler.words import lasting
from controllers.autoscaler.world import BY, Node, World
from controllers.planner import Fate, Plan, Pod, Snapshot, plan
from controllers.planner.resources import CPU, GPU, MEMORY
from operations.breaker import BrakeDecision as Brakes
from operations.breaker import BrakeKind, Limits, decide

DOING = "scale-in"
"""The name of the activity in the brake's messages."""
_WHOLE = (BrakeKind.CONTROL_PLANE, BrakeKind.STALE, BrakeKind.ALL_AT_ONCE)


@dataclass(frozen=True)
class Shrunk:
    """The result of `shrink`. idle: see `Memory`. kept: node -> why it stays."""

    decisions: tuple[Decision, ...]
    idle: Mapping[str, float]
    kept: Mapping[str, str]
    brakes: Brakes


@dataclass(frozen=True)
class _Host:
    node: Node
    machine: Machine


def shrink(
    world: World,
    memory: Memory,
    question: PlannerInput,
    planned: Plan,
    settings: Autoscaler,
    limits: Limits,
    late: Sequence[Late],
) -> Shrunk:
    """Decide which hosts are removed and which stay."""
    hosts = _of_groups(world)
    needed = {verdict.host for verdict in planned.verdicts.values() if verdict.host}
    needed |= {host.name for host in question.snapshot.hosts if host.expects}
    kept, idle, due = {}, {}, []
    for name, host in hosts.items():
        if host.node.mark == BY:
            continue
        if why := _stays(host.node, needed, memory, settings):
            kept[name] = why
            continue
        idle[name] = since = memory.idle.get(name, world.now_s)
        threshold_s = (settings.idle.gpu if world.supplies[host.node.pool].gpu else settings.idle.cpu) / 1000
        if world.now_s - since < threshold_s:
            kept[name] = f"has been idle for {lasting(world.now_s - since)}; it is removed after {lasting(threshold_s)}"
        else:
            due.append(host)
    going = [host for host in hosts.values() if host.node.mark == BY]
    chosen = _chosen(world, question, due, going, settings, limits, idle, kept)
    back = {host.node.name: why for host in going if (why := _back(host.node, needed))}
    gone = [node for node in world.nodes if node.name in memory.gone and _is_left(node)]
    steps = [host for host in going if host.node.name not in back]
    removing = [host.node.name for host in (*steps, *chosen)]
    # A machine that is gone is not a node to remove: it neither counts nor triggers the brake.
    there = tuple(each for each in world.fleet.members if each.name not in memory.gone)
    brakes = decide(replace(world.fleet, members=there), removing, limits, DOING)
    stopped = next((brake.text for brake in brakes.brakes if brake.kind in _WHOLE), "")
    decisions = [Decision(Act.GIVE_BACK, hosts[name].node.pool, why, node=name) for name, why in back.items()]
    for name in removing:
        if why := brakes.why_not(name):
            kept[name] = why
    kept |= {node.name: stopped for node in gone if stopped}
    decisions += [step for host in steps if host.node.name not in kept and (step := _step(host))]
    decisions += [_begin(world, host, idle) for host in chosen if host.node.name not in kept]
    if not stopped:
        decisions += [Decision(Act.REMOVE, each.pool, each.why, machine=each.machine) for each in late]
        decisions += [Decision(Act.FORGET, node.pool, "its machine is gone", node=node.name) for node in gone]
    return Shrunk(tuple(decisions), idle, kept, brakes)


def _is_left(node: Node) -> bool:
    """Whether a Node whose machine the cloud no longer lists may be deleted.

    If we emptied it and gave it back: at once. Otherwise only when its kubelet is silent, because a cloud's list may be wrong for a
    moment.
    """
    return not node.ready or (node.mark == BY and node.cordoned and not node.pods)


def _of_groups(world: World) -> dict[str, _Host]:
    """Return the existing Nodes whose machines the autoscaler may give back."""
    return {
        machine.node: _Host(world.by_node[machine.node], machine)
        for pool, group in world.groups.items()
        if pool in world.supplies and world.supplies[pool].grows
        for machine in alive(group)
        if machine.node in world.by_node
    }


def _stays(node: Node, needed: set[str], memory: Memory, settings: Autoscaler) -> str:
    """Return why a host isn't idle, "" if it is."""
    if node.keep:
        return "has an annotation that keeps it"
    if node.cordoned or node.mark:
        return f"was taken out of service by {node.mark}" if node.mark else "was cordoned by somebody"
    if not node.ready:
        return "isn't Ready, so its use is unknown"
    if node.starting:
        return "is starting"
    if keeper := next((each for each in node.pods if each.keeps), None):
        return f"runs {keeper.name}, which {keeper.keeps}"
    if node.name in needed:
        return "is needed by waiting pods"
    if any(order.pool == node.pool for order in memory.orders if not order.ready_s):
        return f"pool {node.pool} is growing"
    used = _used_percent(node)
    if node.pods and used > settings.idle_below:
        return f"is in use: {used} %"
    return ""


def _used_percent(node: Node) -> int:
    """Return the use in percent of the resource that its pods use most of. Daemons are not counted."""
    shares = [0]
    for name in (CPU, MEMORY, GPU):
        taken = sum(each.shape.size[name] for each in node.pods)
        if node.allocatable[name]:
            shares.append(-(-taken * 100 // node.allocatable[name]))
    return max(*shares, 1) if node.pods else 0


def _back(node: Node, needed: set[str]) -> str:
    """Return why a host whose removal has started returns to service, "" if the removal continues."""
    if not node.cordoned:
        return "somebody uncordoned it"
    if node.keep:
        return "it has an annotation that keeps it"
    if keeper := next((each for each in node.pods if each.keeps and not each.ending), None):
        return f"it runs {keeper.name}, which {keeper.keeps}"
    return "waiting pods need it" if node.name in needed else ""


def _chosen(
    world: World,
    question: PlannerInput,
    due: list[_Host],
    going: Sequence[_Host],
    settings: Autoscaler,
    limits: Limits,
    idle: Mapping[str, float],
    kept: dict[str, str],
) -> list[_Host]:
    """Choose, from the hosts that have been idle long enough, those whose removal starts now: the dearest, then the longest idle."""
    count = len(world.fleet.members)
    # The brake refuses a whole request above its share. With one host it is still asked, so that it gives the reason.
    left = min(share_of(settings.removed_step, count), share_of(limits.max_removed, count)) - len(going)
    least = {
        pool: min(group.size, len(alive(group))) - group.least - sum(host.node.pool == pool for host in going)
        for pool, group in world.groups.items()
    }
    chosen: list[_Host] = []
    due.sort(key=lambda host: (-world.supplies[host.node.pool].pool.price, idle[host.node.name], host.node.name))
    for host in due:
        name, pool = host.node.name, host.node.pool
        if least[pool] <= 0:
            kept[name] = f"is idle, but pool {pool} is at its minimum of {world.groups[pool].least}"
        elif len(chosen) >= left:
            kept[name] = (
                f"is idle, but waits for other removals: at most {settings.removed_step} of the cluster at a time"
            )
        elif not _fit_elsewhere(question, [*chosen, *going, host]):
            kept[name] = "is nearly idle, but its pods fit nowhere else"
        else:
            least[pool] -= 1
            chosen.append(host)
    return chosen


def _fit_elsewhere(question: PlannerInput, leaving: Sequence[_Host]) -> bool:
    """Whether the pods of hosts that leave fit on hosts that stay and that no other pods wait for."""
    movers = [each for host in leaving for each in host.node.pods if not each.ending]
    if not movers:
        return True
    names = {host.node.name for host in leaving}
    hosts = tuple(
        replace(host, open=host.open and host.name not in names and not host.expects)
        for host in question.snapshot.hosts
    )
    counts = {pool.name: sum(host.pool == pool.name for host in hosts) for pool in question.snapshot.pools}
    pools = tuple(replace(pool, most=counts[pool.name]) for pool in question.snapshot.pools)
    pods = tuple(Pod(each.name, each.shape, 0) for each in movers)
    verdicts = plan(Snapshot(question.snapshot.taken_s, pools, hosts, pods)).verdicts.values()
    return all(verdict.fate is Fate.ROOM for verdict in verdicts)


def _step(host: _Host) -> Decision | None:
    """Return the next step of a host's removal, None while it waits for something."""
    node = host.node
    movers = [each for each in node.pods if not each.ending]
    if movers:
        act, why = Act.DRAIN, f"{len(movers)} pods must move"
    elif node.pods:
        return None
    else:
        act, why = Act.REMOVE, "it is empty and cordoned"
    return Decision(act, node.pool, why, node=node.name, machine=host.machine.id)


def _begin(world: World, host: _Host, idle: Mapping[str, float]) -> Decision:
    what = f"used only by {len(host.node.pods)} pods that may move" if host.node.pods else "idle"
    why = f"{what} for {lasting(world.now_s - idle[host.node.name])}"
    return Decision(Act.CORDON, host.node.pool, why, node=host.node.name, machine=host.machine.id)
