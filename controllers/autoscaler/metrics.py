"""The loop's Prometheus metrics and health check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from clients import telemetry
from clients.telemetry import Answer, Pages, Sample, wellness
from controllers.autoscaler.reconcile import alive
from controllers.autoscaler.run import Round
from controllers.planner import Fate

PREFIX = "menagerie_autoscaler_"

GAUGES = {
    "pods": "Pods that wait, by their fate in the plan.",
    "machines": "Machines of a pool, by state; state wanted is the group's size.",
    "idle_hosts": "Hosts of a pool that nothing needs.",
    "orders": "Machines of a pool that were ordered for pods and do not take work yet.",
    "resting": "1 while a pool is in backoff because its cloud gave no machine.",
    "braked_hosts": "Hosts that the brake keeps from being removed now.",
    "planned_dollars_per_hour": "Hourly cost of the hosts that the last plan adds.",
    "pool_dollars_per_hour": "Hourly cost of a pool's machines.",
    "last_pass_timestamp_seconds": "Unix time of the last successful pass.",
    "pass_seconds": "Duration of the last pass, by part.",
}
"""Name -> meaning. docs/how-to/autoscaler.md lists all metrics; a test compares them."""


class Metrics(telemetry.Metrics):
    """The loop's metrics. clock: Unix time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(PREFIX, GAUGES)
        self._clock = clock
        self._last_pass_s: float | None = None
        self._passes = self.counter("passes", "Passes, by outcome.", "end")
        says = "Decisions that were carried out, by act, pool and whether they failed."
        self._acts = self.counter("acts", says, "act", "pool", "failed")

    def failed(self) -> None:
        self._passes.labels("failed").inc()

    def count(self, round_: Round) -> None:
        self._passes.labels("refused" if round_.decided.refused else "done").inc()
        for each in round_.done:
            self._acts.labels(each.decision.act, each.decision.pool, "true" if each.failed else "false").inc()
        self._last_pass_s = self._clock()
        self.replace((*_samples(round_), ("last_pass_timestamp_seconds", {}, self._last_pass_s)))

    def age_s(self) -> float | None:
        """Return the seconds since the last successful pass, None before the first."""
        return None if self._last_pass_s is None else self._clock() - self._last_pass_s


def _samples(round_: Round) -> Iterator[Sample]:
    world, decided = round_.world, round_.decided
    fates = Counter(str(verdict.fate) for verdict in decided.verdicts.values())
    for fate in Fate:
        yield "pods", {"fate": str(fate)}, fates[str(fate)]
    for pool, group in world.groups.items():
        of_pool = {"pool": pool}
        states = Counter(machine.state for machine in group.machines)
        for state in ("booting", "running", "leaving"):
            yield "machines", {**of_pool, "state": state}, states[state]
        yield "machines", {**of_pool, "state": "wanted"}, group.size
        idle = sum(world.by_node[name].pool == pool for name in decided.memory.idle if name in world.by_node)
        yield "idle_hosts", of_pool, idle
        yield "orders", of_pool, sum(order.pool == pool for order in decided.memory.orders if not order.ready_s)
        yield "resting", of_pool, float(decided.memory.resting(pool, world.now_s) is not None)
        if pool in world.supplies:
            yield "pool_dollars_per_hour", of_pool, world.supplies[pool].pool.price * len(alive(group)) / 1e6
    braked = frozenset[str]().union(*(brake.hosts for brake in decided.brakes.brakes)) if decided.brakes else ()
    yield "braked_hosts", {}, len(braked)
    yield "planned_dollars_per_hour", {}, decided.plan.bill / 1e6 if decided.plan else 0.0
    for part, seconds in zip(("look", "decide", "act"), round_.took_s, strict=True):
        yield "pass_seconds", {"part": part}, seconds


def pages(metrics: Metrics, stale_s: float) -> Pages:
    """Return /metrics and /healthz; the latter is 503 if no pass succeeded for stale_s."""

    def health() -> Answer:
        age_s = metrics.age_s()
        if age_s is None:
            return wellness(True, "no pass has finished yet")
        return wellness(age_s <= stale_s, f"the last pass finished {age_s:.0f} s ago")

    return {"/metrics": metrics.page, "/healthz": health}
