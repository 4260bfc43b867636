"""The loop: look, decide, store the memory, act. `decide` makes the decisions, `hands` carries them out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from cluster.autoscaler import Autoscaler
from controllers.autoscaler.actuator import FORESEEN
from controllers.autoscaler.decide import decide
from controllers.autoscaler.decision import Act, Decision, Pass
from controllers.autoscaler.groups import GroupError
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.world import World
from controllers.planner import Budget, Policy
from operations.breaker import Limits

FRESH_S = 60.0
"""How old a look may be for a removal. The next pass decides the remaining ones again."""
_REMOVALS = (Act.CORDON, Act.DRAIN, Act.REMOVE, Act.FORGET)


class Acting(Protocol):
    """See `hands.Hands`."""

    def carry_out(self, decision: Decision, world: World) -> str: ...
    def recall(self) -> Memory: ...
    def remember(self, memory: Memory) -> None: ...
    def pause(self, paused: bool) -> None: ...


@dataclass(frozen=True)
class Done:
    """A decision and its result. text: a message for people. failed: whether it could not be carried out."""

    decision: Decision
    text: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Round:
    """One pass of the loop. took_s: reading, deciding, acting."""

    world: World
    decided: Pass
    done: tuple[Done, ...] = ()
    took_s: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass
class Loop:
    """The loop. observe: reads the cluster. clock: monotonic seconds. check: called before every act; raises
    `clients.lease.LostTheLockError` if the lock is no longer ours."""

    observe: Callable[[Memory], World]
    actuator: Acting
    settings: Autoscaler
    limits: Limits
    clock: Callable[[], float] = time.monotonic
    check: Callable[[], None] = lambda: None
    policy: Policy | None = None

    def once(self, *, dry_run: bool = False) -> Round:
        """Run one pass. Errors: raises those of the API and the lock. Errors of a decision's act are part of the round."""
        start_s = self.clock()
        memory = self.actuator.recall()
        world = self.observe(memory)
        observed_s = self.clock()
        seconds = self.settings.solver / 1000
        budget = Budget(seconds, time.process_time) if seconds else None
        decisions = decide(world, memory, self.settings, self.limits, self.policy, budget)
        decided_s = self.clock()
        if dry_run:
            return Round(world, decisions, (), (observed_s - start_s, decided_s - observed_s, 0.0))
        self.check()
        if decisions.memory != memory:
            self.actuator.remember(decisions.memory)
        if decisions.brakes and decisions.brakes.paused != world.fleet.paused:
            self.actuator.pause(decisions.brakes.paused)
        done = tuple(self._act(decision, world, start_s) for decision in decisions.decisions)
        self._learn(decisions.memory, world, done)
        return Round(world, decisions, done, (observed_s - start_s, decided_s - observed_s, self.clock() - decided_s))

    def _act(self, decision: Decision, world: World, began: float) -> Done:
        self.check()
        if decision.act in _REMOVALS and self.clock() - began > FRESH_S:
            return Done(
                decision,
                f"the cluster was read more than {FRESH_S:.0f} s ago; the next pass decides again",
                failed=True,
            )
        try:
            return Done(decision, self.actuator.carry_out(decision, world))
        except FORESEEN as error:
            return Done(decision, _words(error), failed=True)

    def _learn(self, memory: Memory, world: World, done: tuple[Done, ...]) -> None:
        """Put pools that their cloud refused to grow into backoff, so that their pods are planned elsewhere."""
        after = memory
        for each in done:
            if each.failed and each.decision.act is Act.GROW:
                first_s, most_s = self.settings.backoff / 1000, self.settings.backoff_most / 1000
                pool = each.decision.pool
                after = after.with_strike(pool, world.now_s, each.text, first_s, most_s)
                after = replace(after, orders=tuple(o for o in after.orders if o.pool != pool or o.machine))
        if after != memory:
            self.actuator.remember(after)


def _words(error: Exception) -> str:
    if isinstance(error, GroupError):
        return str(error)
    status = getattr(error, "status", None)
    return f"the API server returned {status} {getattr(error, 'reason', '')}" if status else str(error)
