"""One pass: takes the observed world, the memory and the time; returns decisions with their reasons. Pure.

The simulation and the loop in a cluster call the same function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cluster.autoscaler import Autoscaler
from controllers.autoscaler.decision import Pass
from controllers.autoscaler.growing import grow
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.reconcile import reconcile
from controllers.autoscaler.shrinking import shrink
from controllers.autoscaler.snapshot import PlannerInput, planner_input
from controllers.autoscaler.words import lasting
from controllers.autoscaler.world import BY, World
from controllers.planner import Budget, Fate, Plan, Policy, Verdict, plan
from operations.breaker import Limits


def decide(
    world: World,
    memory: Memory,
    settings: Autoscaler,
    limits: Limits,
    policy: Policy | None = None,
    budget: Budget | None = None,
) -> Pass:
    """Decide one pass. limits: of the shared brake. If the world is incomplete or contradicts itself, nothing is decided or forgotten."""
    if refused := "; ".join(_refusals(world)):
        waits = Verdict(Fate.WAITING, f"nothing is decided: {refused}")
        return Pass((), memory, {pod.name: waits for pod in world.waiting}, notices=world.notices, refused=refused)
    memory, late = reconcile(world, memory, settings)
    try:
        question = planner_input(world, memory, settings)
    except ValueError as error:
        refused = "; ".join(str(error).splitlines())
        waits = Verdict(Fate.WAITING, f"nothing is decided: {refused}")
        return Pass((), memory, {pod.name: waits for pod in world.waiting}, notices=world.notices, refused=refused)
    planned = plan(question.snapshot, policy, budget)
    grown = grow(world, memory, question, planned, settings)
    shrunk = shrink(world, grown.memory, question, planned, settings, limits, late)
    verdicts = {**_with_rests(world, memory, planned), **grown.verdicts, **question.verdicts}
    memory = replace(grown.memory, idle=shrunk.idle, stuck=_stuck(world, memory, question, planned))
    notices = (
        *world.notices,
        *question.notices,
        *(f"pool {pool} is not grown: {rest.why}" for pool, rest in memory.rests.items() if rest.until_s > world.now_s),
    )
    return Pass(
        (*grown.decisions, *shrunk.decisions), memory, verdicts, shrunk.kept, planned, shrunk.brakes, tuple(notices)
    )


def _refusals(world: World) -> Iterator[str]:
    """Yield why the observed world can't be trusted."""
    if world.missing:
        yield f"{' and '.join(world.missing)} did not answer"
    owners: dict[str, str] = {}
    for pool, group in world.groups.items():
        for machine in group.machines:
            for what in filter(None, (f"machine {machine.id}", machine.node and f"node {machine.node}")):
                if owners.setdefault(what, pool) != pool:
                    yield f"{what} is listed in pool {owners[what]} and in pool {pool}"
            node = world.by_node.get(machine.node)
            if node is not None and node.pool != pool:
                yield f"node {node.name} belongs to pool {node.pool} by its label, but to {pool} according to its cloud"
        there = {machine.node for machine in group.machines}
        # A node stays Ready for a moment after its machine was given back.
        ready = [node for node in world.nodes if node.pool == pool and node.ready and node.mark != BY]
        strays = [node.name for node in ready if node.name not in there]
        if len(strays) * 2 > len(ready):
            yield (
                f"pool {pool} has {len(ready)} Ready nodes, but its cloud has no machine for {len(strays)} of them "
                f"({', '.join(sorted(strays)[:3])})"
            )


def _with_rests(world: World, memory: Memory, planned: Plan) -> dict[str, Verdict]:
    """Return the plan's verdicts. Those of pods that wait also name the pools in backoff."""
    rests = [
        f"pool {pool} is not grown for {lasting(rest.until_s - world.now_s)}: {rest.why}"
        for pool, rest in sorted(memory.rests.items())
        if rest.until_s > world.now_s
    ]
    if not rests:
        return dict(planned.verdicts)
    more = f" ({'; '.join(rests)})"
    return {
        pod: replace(verdict, reason=verdict.reason + more) if verdict.fate in (Fate.WAITING, Fate.NEVER) else verdict
        for pod, verdict in planned.verdicts.items()
    }


def _stuck(world: World, memory: Memory, question: PlannerInput, planned: Plan) -> dict[str, float]:
    """Return pods that have room on hosts in service but do not start -> since when."""
    since = {}
    for pod in world.waiting:
        verdict = planned.verdicts.get(pod.name)
        here = verdict is not None and verdict.fate is Fate.ROOM and verdict.host not in question.coming
        marked = here and verdict is not None and world.by_node[verdict.host].cordoned
        if (here and not marked) or pod.uid in memory.stuck and not marked:
            since[pod.uid] = memory.stuck.get(pod.uid, world.now_s)
    return since
