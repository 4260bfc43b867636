"""Turns a plan into orders: how many machines each pool should have, smoothed over passes, and never only part of a gang's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from cluster.autoscaler import Autoscaler
from cluster.quantities import share_of
from controllers.autoscaler.decision import Act, Decision
from controllers.autoscaler.memory import Memory, Order
from controllers.autoscaler.reconcile import alive
from controllers.autoscaler.snapshot import PlannerInput
from controllers.autoscaler.world import World
from controllers.planner import Fate, NewHost, Plan, Verdict


@dataclass(frozen=True)
class Grown:
    """The result of `grow`. memory: with the new orders. verdicts: of pods whose hosts are ordered in a later pass."""

    memory: Memory
    decisions: tuple[Decision, ...]
    verdicts: Mapping[str, Verdict]


def grow(world: World, memory: Memory, question: PlannerInput, plan: Plan, settings: Autoscaler) -> Grown:
    """Order what the plan adds, record which pods are expected on coming machines, and decide the size of each pool."""
    memory = _expecting(memory, question, plan, world.now_s)
    chosen, later = _smoothed(plan, question, world, settings)
    orders = [Order(host.pool, world.now_s, host.pods) for host in chosen]
    memory = replace(memory, orders=(*memory.orders, *orders))
    waits = {
        pod: Verdict(Fate.WAITING, f"waits: pool {host.pool} grows by at most {_step(world, host.pool, settings)} hosts in a "
                     "pass; its host is ordered in a later pass")
        for host in later for pod in host.pods
    }  # fmt: skip
    return Grown(memory, tuple(_sizes(world, memory, chosen)), waits)


def _expecting(memory: Memory, question: PlannerInput, plan: Plan, now_s: float) -> Memory:
    """Record that pods which the plan puts on coming machines are expected there."""
    expected: dict[str, list[str]] = {}
    for pod, verdict in plan.verdicts.items():
        if verdict.fate is Fate.ROOM and verdict.host in question.coming:
            expected.setdefault(verdict.host, []).append(pod)
    orders = list(memory.orders)
    unseen: dict[str, int] = {}
    for name, (pool, machine) in question.coming.items():
        if machine:
            at = next((at for at, order in enumerate(orders) if order.machine == machine), None)
        else:
            number = unseen[pool] = unseen.get(pool, -1) + 1
            of_pool = [at for at, order in enumerate(orders) if order.pool == pool and not order.machine]
            at = of_pool[number] if number < len(of_pool) else None
        pods = tuple(sorted(expected.get(name, ())))
        if at is not None:
            orders[at] = replace(orders[at], pods=pods)
        elif pods:
            orders.append(Order(pool, now_s, pods, machine))
    return replace(memory, orders=tuple(orders))


def _smoothed(
    plan: Plan, question: PlannerInput, world: World, settings: Autoscaler
) -> tuple[list[NewHost], list[NewHost]]:
    """Return (hosts to order now, hosts to order later). Hosts whose pods have waited longest come first."""
    pods = {pod.name: pod for pod in question.snapshot.pods}
    chosen: list[NewHost] = []
    later: list[NewHost] = []
    added: dict[str, int] = {}
    bundles = _together(plan.hosts, {name: pod.gang for name, pod in pods.items()})
    for bundle in sorted(bundles, key=lambda each: (min(pods[p].since_s for h in each for p in h.pods), each[0].name)):
        counts: dict[str, int] = {}
        for host in bundle:
            counts[host.pool] = counts.get(host.pool, 0) + 1
        fits = all(
            not added.get(pool) or added[pool] + count <= _step(world, pool, settings) for pool, count in counts.items()
        )
        if not fits:
            later += bundle
            continue
        chosen += bundle
        for pool, count in counts.items():
            added[pool] = added.get(pool, 0) + count
    return chosen, later


def _together(hosts: Iterable[NewHost], gang_of: Mapping[str, str | None]) -> list[list[NewHost]]:
    """Group hosts that carry pods of the same gang, transitively."""
    bundles: list[tuple[set[str], list[NewHost]]] = []
    for host in hosts:
        gangs = {gang for pod in host.pods if (gang := gang_of[pod])}
        joined = [bundle for bundle in bundles if bundle[0] & gangs]
        rest = [bundle for bundle in bundles if not bundle[0] & gangs]
        merged = [each for _, own in joined for each in own]
        bundles = [*rest, (gangs.union(*(own for own, _ in joined)), [*merged, host])]
    return [own for _, own in bundles]


def _step(world: World, pool: str, settings: Autoscaler) -> int:
    return share_of(settings.added_step, world.supplies[pool].pool.most)


def _sizes(world: World, memory: Memory, chosen: Iterable[NewHost]) -> Iterator[Decision]:
    """Yield the new size of each pool that grows: its machines plus all orders, whether they have reached the cloud or not."""
    new: dict[str, list[NewHost]] = {}
    for host in chosen:
        new.setdefault(host.pool, []).append(host)
    for pool, group in world.groups.items():
        if pool not in world.supplies or not world.supplies[pool].grows:
            continue
        ordered = sum(order.pool == pool and not order.machine for order in memory.orders)
        size = min(len(alive(group)) + ordered, group.most)
        if size > group.size:
            pods = [pod for host in new.get(pool, ()) for pod in host.pods]
            why = f"for {len(pods)} pods: {_some(pods)}" if pods else "an earlier order is repeated"
            price = world.supplies[pool].pool.price * (size - group.size) / 1e6
            yield Decision(Act.GROW, pool, f"{size - group.size} more, {price:.2f} $/h, {why}", size)


def _some(names: list[str], shown: int = 3) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
