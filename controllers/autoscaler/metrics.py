"""The loop's Prometheus metrics and health check."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator

from clients.telemetry import Answer, Labels, Meanings, Pages, exposition, wellness
from controllers.autoscaler.reconcile import alive
from controllers.autoscaler.run import Round
from controllers.planner import Fate

PREFIX = "menagerie_autoscaler_"

HELP: Meanings = {
    "passes_total": ("counter", "Passes, by outcome."),
    "acts_total": ("counter", "Decisions that were carried out, by act, pool and whether they failed."),
    "pods": ("gauge", "Pods that wait, by their fate in the plan."),
    "machines": ("gauge", "Machines of a pool, by state; state wanted is the group's size."),
    "idle_hosts": ("gauge", "Hosts of a pool that nothing needs."),
    "orders": ("gauge", "Machines of a pool that were ordered for pods and do not take work yet."),
    "resting": ("gauge", "1 while a pool is in backoff because its cloud gave no machine."),
    "braked_hosts": ("gauge", "Hosts that the brake keeps from being removed now."),
    "planned_dollars_per_hour": ("gauge", "Hourly cost of the hosts that the last plan adds."),
    "pool_dollars_per_hour": ("gauge", "Hourly cost of a pool's machines."),
    "last_pass_timestamp_seconds": ("gauge", "Unix time of the last successful pass."),
    "pass_seconds": ("gauge", "Duration of the last pass, by part."),
}
"""Name -> type and meaning. Also listed in docs/how-to/autoscaler.md; a test compares them."""


class Metrics:
    """The loop's metrics. clock: Unix time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._gauges: dict[tuple[str, Labels], float] = {}
        self._lock = threading.Lock()

    def failed(self) -> None:
        with self._lock:
            self._counts["passes_total", (("end", "failed"),)] += 1

    def count(self, round_: Round) -> None:
        gauges = dict(_gauges(round_))
        with self._lock:
            end = "refused" if round_.decided.refused else "done"
            self._counts["passes_total", (("end", end),)] += 1
            for each in round_.done:
                labels = (("act", str(each.decision.act)), ("pool", each.decision.pool), ("failed", _yes(each.failed)))
                more = 1
                self._counts["acts_total", labels] += more
            self._gauges = gauges
            self._gauges["last_pass_timestamp_seconds", ()] = self._clock()

    def page(self) -> Answer:
        with self._lock:
            return exposition(PREFIX, HELP, {**self._counts, **self._gauges})

    def age_s(self) -> float | None:
        """Return the seconds since the last successful pass, None before the first."""
        with self._lock:
            last = self._gauges.get(("last_pass_timestamp_seconds", ()))
        return None if last is None else self._clock() - last


def _gauges(round_: Round) -> Iterator[tuple[tuple[str, Labels], float]]:
    world, decided = round_.world, round_.decided
    fates = Counter(str(verdict.fate) for verdict in decided.verdicts.values())
    for fate in Fate:
        yield ("pods", (("fate", str(fate)),)), fates[str(fate)]
    for pool, group in world.groups.items():
        of_pool = (("pool", pool),)
        states = Counter(machine.state for machine in group.machines)
        for state in ("booting", "running", "leaving"):
            yield ("machines", (*of_pool, ("state", state))), states[state]
        yield ("machines", (*of_pool, ("state", "wanted"))), group.size
        idle = sum(world.by_node[name].pool == pool for name in decided.memory.idle if name in world.by_node)
        yield ("idle_hosts", of_pool), idle
        yield ("orders", of_pool), sum(order.pool == pool for order in decided.memory.orders if not order.ready_s)
        yield ("resting", of_pool), float(decided.memory.resting(pool, world.now_s) is not None)
        if pool in world.supplies:
            yield ("pool_dollars_per_hour", of_pool), world.supplies[pool].pool.price * len(alive(group)) / 1e6
    braked = frozenset[str]().union(*(brake.hosts for brake in decided.brakes.brakes)) if decided.brakes else ()
    yield ("braked_hosts", ()), len(braked)
    yield ("planned_dollars_per_hour", ()), decided.plan.bill / 1e6 if decided.plan else 0.0
    for part, seconds in zip(("look", "decide", "act"), round_.took_s, strict=True):
        yield ("pass_seconds", (("part", part),)), seconds


def _yes(value: bool) -> str:
    return "true" if value else "false"


def pages(metrics: Metrics, stale_s: float) -> Pages:
    """Return /metrics and /healthz; the latter is 503 if no pass succeeded for stale_s."""

    def health() -> Answer:
        age_s = metrics.age_s()
        if age_s is None:
            return wellness(True, "no pass has finished yet")
        return wellness(age_s <= stale_s, f"the last pass finished {age_s:.0f} s ago")

    return {"/metrics": metrics.page, "/healthz": health}
