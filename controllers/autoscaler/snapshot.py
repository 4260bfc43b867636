"""Builds the planner's snapshot: the world at this moment, plus machines that were ordered and do not exist yet. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cluster.autoscaler import Autoscaler
from controllers.autoscaler.gang import Membership
from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.keys import PREFIX
from controllers.autoscaler.memory import Memory, Order
from controllers.autoscaler.reconcile import alive, node_of, takes_work
from controllers.autoscaler.world import Node, Supply, Waiting, World
from controllers.planner import Fate, Gang, HostSupply, Operator, Pod, Requirement, Shape, Snapshot, Verdict
from controllers.planner.supply import labels as sorted_labels

_NEW_LABEL, _NEW, _THERE = f"{PREFIX}host", "new", "there"
STUCK_S = 120.0
"""After this time, a pod for which the planner sees room and the scheduler doesn't is planned only onto new hosts: something that
the planner does not model keeps it away."""


@dataclass(frozen=True)
class PlannerInput:
    """The planner's snapshot, and what it does not contain.

    verdicts: of pods that are left out. coming: name of a host that does not exist yet -> (pool, id of its machine or "").
    notices: contradictions that don't prevent planning.
    """

    snapshot: Snapshot
    verdicts: Mapping[str, Verdict]
    coming: Mapping[str, tuple[str, str]]
    notices: tuple[str, ...] = ()


@dataclass
class _Left:
    """Collects verdicts of pods that are left out, and notices."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def planner_input(world: World, memory: Memory, settings: Autoscaler) -> PlannerInput:
    """Build the snapshot. Errors: raises ValueError with every contradiction if the world contradicts itself."""
    left = _Left()
    stuck = {pod.name for pod in world.waiting if world.now_s - memory.stuck.get(pod.uid, world.now_s) >= STUCK_S}
    planned = [pod for pod in world.waiting if not _left_out(pod, world, memory, settings, left)]
    gangs = _gangs(planned, world, left)
    pods = tuple(_pod(pod, pod.name in stuck) for pod in planned)
    keys = _keys_used(pods, gangs)
    hosts, coming = _hosts(world, memory, settings, keys, bool(stuck))
    counts = Counter(host.pool for host in hosts)
    pools = []
    for name, supply in world.supplies.items():
        pool, resting = supply.pool, memory.resting(name, world.now_s)
        own = sorted_labels(dict(pool.labels) | {_NEW_LABEL: _NEW}) if stuck else pool.labels
        open_ = supply.grows and not resting
        pools.append(replace(pool, labels=own, most=max(pool.most if open_ else 0, counts[name])))
    snapshot = Snapshot(int(world.now_s), tuple(pools), hosts, pods, gangs)
    return PlannerInput(snapshot, left.verdicts, coming, tuple(left.notices))


def _left_out(pod: Waiting, world: World, memory: Memory, settings: Autoscaler, left: _Left) -> bool:
    tries = memory.tries.get(pod.uid, 0)
    age_s = world.now_s - pod.since_s
    if pod.refused:
        left.verdicts[pod.name] = Verdict(Fate.NEVER, f"no machine is ordered for it: {pod.refused}")
    elif tries >= settings.tries:
        said = f"; the scheduler reports: {pod.scheduler_message}" if pod.scheduler_message else ""
        text = f"no more machines are ordered for it: it did not start on any of the {tries} hosts that were added for it{said}"
        left.verdicts[pod.name] = Verdict(Fate.NEVER, text)
    elif age_s < settings.settle / 1000:
        left.verdicts[pod.name] = Verdict(Fate.WAITING, "is new; a later pass plans it")
    return pod.name in left.verdicts


def _gangs(planned: Iterable[Waiting], world: World, left: _Left) -> tuple[Gang, ...]:
    """Return the gangs, with the number of pods still to place. If pods disagree on their gang, the largest counts, with a notice."""
    running = Counter(each.gang for node in world.nodes for each in node.residents if each.gang and not each.ending)
    by_name: dict[str, list[Membership]] = {}
    for pod in planned:
        if pod.gang:
            by_name.setdefault(pod.gang.name, []).append(pod.gang)
    gangs = {}
    for name, own in by_name.items():
        largest = max(own, key=lambda each: each.size)
        if len(set(own)) > 1:
            left.notices.append(f"pods of gang {name} disagree on its size or its topology; {largest} is used")
        need = largest.size - running[name]
        if len(own) > need:
            left.notices.append(
                f"gang {name} has {running[name] + len(own)} pods, but its PodGroup's minCount is {largest.size}"
            )
        gangs[name] = Gang(name, max(need, len(own)), largest.within)
    return tuple(gangs[name] for name in sorted(gangs))


def _pod(pod: Waiting, stuck: bool) -> Pod:
    shape = _onto_new(pod.shape) if stuck else pod.shape
    return Pod(pod.name, shape, pod.since_s, pod.priority, pod.gang.name if pod.gang else None)


def _onto_new(shape: Shape) -> Shape:
    need = Requirement(_NEW_LABEL, Operator.IN, (_NEW,))
    return replace(shape, needs=tuple((*term, need) for term in shape.needs) or ((need,),))


def _keys_used(pods: Iterable[Pod], gangs: Iterable[Gang]) -> frozenset[str]:
    """Return the labels that pods ask for. Hosts that differ only in other labels are alike, which keeps planning fast."""
    shapes = {id(pod.shape): pod.shape for pod in pods}.values()
    keys = {need.key for shape in shapes for term in shape.needs for need in term}
    keys |= {wish.key for shape in shapes for wish in shape.preferences}
    return frozenset(keys | {gang.within for gang in gangs if gang.within})


def _hosts(
    world: World, memory: Memory, settings: Autoscaler, keys: frozenset[str], marked: bool
) -> tuple[tuple[HostSupply, ...], Mapping[str, tuple[str, str]]]:
    hosts: list[HostSupply] = []
    coming: dict[str, tuple[str, str]] = {}
    orders = {order.machine: order for order in memory.orders if order.machine}
    of_groups: set[str] = set()
    for pool, group in world.groups.items():
        if pool not in world.supplies:
            continue
        of_groups |= {each.node for each in group.machines if each.node}
        closed = memory.resting(pool, world.now_s) is not None
        for machine in alive(group):
            node, order = node_of(world, machine), orders.get(machine.id)
            if node is not None and takes_work(node):
                hosts.append(_there(node, keys, marked, order))
            else:
                host = _to_come(machine, node, world.supplies[pool], order, world, settings)
                hosts.append(host)
                coming[host.name] = (pool, machine.id)
        hosts += _unseen(pool, group, memory, world.supplies[pool], closed, coming)
    for node in world.nodes:
        if node.name not in of_groups and node.pool in world.supplies:
            hosts.append(_there(node, keys, marked, None))
    return tuple(hosts), coming


def _there(node: Node, keys: frozenset[str], marked: bool, order: Order | None) -> HostSupply:
    own = {key: value for key, value in node.labels.items() if key in keys}
    own |= {_NEW_LABEL: _NEW if order else _THERE} if marked else {}
    apart = frozenset(each.shape.apart for each in node.residents if each.shape.apart)
    is_open = node.ready and not node.starting and not node.keep_away
    expects = order.pods if order else ()
    return HostSupply(node.name, node.pool, node.free(), "", sorted_labels(own), node.taints, apart, expects, is_open)


def _to_come(
    machine: Machine, node: Node | None, supply: Supply, order: Order | None, world: World, settings: Autoscaler
) -> HostSupply:
    """Return the host of a machine that boots, or whose node is unhealthy. It counts as room while it may still arrive in time."""
    since = machine.since.timestamp() if machine.since else (node.since_s if node else world.now_s)
    young = world.now_s - since <= settings.boot_timeout / 1000
    is_open = order is not None or (young and (node is None or node.starting) and not (node and node.keep_away))
    name = f"machine {machine.id}" if node is None else node.name
    return HostSupply(name, supply.pool.name, supply.pool.room, expects=order.pods if order else (), open=is_open)


def _unseen(
    pool: str, group: Group, memory: Memory, supply: Supply, closed: bool, coming: dict[str, tuple[str, str]]
) -> Iterator[HostSupply]:
    """Yield desired machines that the cloud does not list yet, first those that were ordered for pods."""
    orders = [order for order in memory.orders if order.pool == pool and not order.machine]
    for at in range(max(len(orders), group.size - len(alive(group)))):
        name = f"{pool} to come {at + 1}"
        expects = orders[at].pods if at < len(orders) else ()
        coming[name] = (pool, "")
        yield HostSupply(name, pool, supply.pool.room, expects=expects, open=at < len(orders) or not closed)
