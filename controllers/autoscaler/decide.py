"""One pass: what was seen, what is remembered and the time in, decisions with their reasons out. Pure.

The simulation and the cluster's loop call the same function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cluster.autoscaler import Autoscaler
from controllers.autoscaler.decision import Pass
from controllers.autoscaler.growing import grow
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.reconcile import reconcile
from controllers.autoscaler.seen import BY, World
from controllers.autoscaler.shrinking import shrink
from controllers.autoscaler.snapshot import Asked, ask
from controllers.autoscaler.words import lasting
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
    """The pass. limits: of the one brake. Of a world that is partial or contradicts itself, nothing is decided or forgotten."""
    if refused := "; ".join(_refusals(world)):
        waits = Verdict(Fate.WAITING, f"nothing is decided: {refused}")
        return Pass((), memory, {pod.name: waits for pod in world.waiting}, notices=world.notices, refused=refused)
    memory, late = reconcile(world, memory, settings)
    try:
        asked = ask(world, memory, settings)
    except ValueError as error:
        refused = "; ".join(str(error).splitlines())
        waits = Verdict(Fate.WAITING, f"nothing is decided: {refused}")
        return Pass((), memory, {pod.name: waits for pod in world.waiting}, notices=world.notices, refused=refused)
    made = plan(asked.snapshot, policy, budget)
    grown = grow(world, memory, asked, made, settings)
    shrunk = shrink(world, grown.memory, asked, made, settings, limits, late)
    verdicts = {**_told(world, memory, made), **grown.verdicts, **asked.verdicts}
    memory = replace(grown.memory, idle=shrunk.idle, stuck=_stuck(world, memory, asked, made))
    notices = (
        *world.notices,
        *asked.notices,
        *(f"pool {pool} is not grown: {rest.why}" for pool, rest in memory.rests.items() if rest.until_s > world.now_s),
    )
    return Pass(
        (*grown.decisions, *shrunk.decisions), memory, verdicts, shrunk.kept, made, shrunk.brakes, tuple(notices)
    )


def _refusals(world: World) -> Iterator[str]:
    """Why what was seen is not believed."""
    if world.missing:
        yield f"{' and '.join(world.missing)} did not answer"
    owners: dict[str, str] = {}
    for pool, group in world.groups.items():
        for machine in group.machines:
            for what in filter(None, (f"machine {machine.id}", machine.node and f"node {machine.node}")):
                if owners.setdefault(what, pool) != pool:
                    yield f"{what} is said to be of pool {owners[what]} and of pool {pool}"
            node = world.by_node.get(machine.node)
            if node is not None and node.pool != pool:
                yield f"node {node.name} says that it is of pool {node.pool}, and its cloud that it is of {pool}"
        there = {machine.node for machine in group.machines}
        # A node is Ready for a moment longer than its machine that was given back.
        ready = [node for node in world.nodes if node.pool == pool and node.ready and node.mark != BY]
        strays = [node.name for node in ready if node.name not in there]
        if len(strays) * 2 > len(ready):
            yield (
                f"pool {pool} has {len(ready)} Ready nodes, and its cloud knows no machine of {len(strays)} of them "
                f"({', '.join(sorted(strays)[:3])})"
            )


def _told(world: World, memory: Memory, made: Plan) -> dict[str, Verdict]:
    """The plan's verdicts; who waits is also told which pools rest."""
    rests = [
        f"pool {pool} is not grown for {lasting(rest.until_s - world.now_s)}: {rest.why}"
        for pool, rest in sorted(memory.rests.items())
        if rest.until_s > world.now_s
    ]
    if not rests:
        return dict(made.verdicts)
    more = f" ({'; '.join(rests)})"
    return {
        pod: replace(verdict, reason=verdict.reason + more) if verdict.fate in (Fate.WAITING, Fate.NEVER) else verdict
        for pod, verdict in made.verdicts.items()
    }


def _stuck(world: World, memory: Memory, asked: Asked, made: Plan) -> dict[str, float]:
    """Pods for which there is room on hosts that take work, and since when that has been so."""
    found = {}
    for pod in world.waiting:
        verdict = made.verdicts.get(pod.name)
        here = verdict is not None and verdict.fate is Fate.ROOM and verdict.host not in asked.coming
        marked = here and verdict is not None and world.by_node[verdict.host].cordoned
        if (here and not marked) or pod.uid in memory.stuck and not marked:
            found[pod.uid] = memory.stuck.get(pod.uid, world.now_s)
    return found
