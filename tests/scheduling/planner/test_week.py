"""A week of a busy pool, planned every half hour: neither large nor small jobs wait forever."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.planner import Gang, HostSupply, Pod, Policy, Shape, Snapshot, plan
from controllers.planner.resources import Resources
from tests.scheduling.planner.support import ask, pool, room

STEP_S, HOUR_S, WEEK_S = 1800, 3600, 7 * 24 * 3600
LONGEST_H = 5
POOL = pool("h100", 55.0, 6, room(96, 1000, 8))
BIG = "big"
SMALL = {count: Shape(ask(4 * count, 32 * count, count)) for count in (1, 2, 4)}
WHOLE = Shape(ask(90, 900, 8))


@dataclass
class Week:
    """A simulated week. running: pod -> (host, shape, until). waited_s: pod -> seconds from creation to start."""

    policy: Policy
    random: Random
    hosts: list[str] = field(default_factory=list)
    running: dict[str, tuple[str, Shape, int]] = field(default_factory=dict)
    waiting: dict[str, Pod] = field(default_factory=dict)
    waited_s: dict[str, int] = field(default_factory=dict)
    jobs: int = 0

    def run(self, load: float) -> None:
        for now in range(0, WEEK_S, STEP_S):
            self.running = {name: each for name, each in self.running.items() if each[2] > now}
            self._arrive(now, load)
            self._start(now)

    def _arrive(self, now: int, load: float) -> None:
        """Add jobs that on average use this share of the pool; once a gang that needs all of it, and once a single large pod."""
        due = load * POOL.most * 8 * STEP_S / (3 * HOUR_S)
        while due > 0 and self.random.random() < due:
            count = self.random.choice(tuple(SMALL))
            due -= count
            self.jobs += 1
            self._add(f"small-{self.jobs}", SMALL[count], now, 100 if self.random.random() < 0.3 else 0)
        if now == 24 * HOUR_S:
            for at in range(POOL.most):
                self._add(f"{BIG}-{at}", WHOLE, now, 0, BIG)
        if now == 72 * HOUR_S:
            self._add("lonely", WHOLE, now, 0)

    def _add(self, name: str, shape: Shape, now: int, priority: int, gang: str | None = None) -> None:
        self.waiting[name] = Pod(name, shape, now, priority, gang)

    def _start(self, now: int) -> None:
        gangs = (Gang(BIG, POOL.most),) if any(pod.gang for pod in self.waiting.values()) else ()
        hosts = tuple(HostSupply(name, POOL.name, self._free(name)) for name in self.hosts)
        result = plan(Snapshot(now, (POOL,), hosts, tuple(self.waiting.values()), gangs), self.policy)
        self.hosts += [f"host-{len(self.hosts) + at}" for at in range(len(result.hosts))]
        names = dict(zip((host.name for host in result.hosts), self.hosts[-len(result.hosts) :], strict=False))
        for name, verdict in result.verdicts.items():
            if verdict.host:
                pod = self.waiting.pop(name)
                hours = 2 if pod.gang else self.random.randint(1, LONGEST_H)
                host = names.get(verdict.host, verdict.host)
                self.running[name] = (host, pod.shape, now + hours * HOUR_S)
                self.waited_s[name] = now - pod.since_s

    def _free(self, host: str) -> Resources:
        free = dict(POOL.room.amounts)
        for on, shape, _ in self.running.values():
            if on == host:
                for name, amount in shape.size.amounts:
                    free[name] -= amount
        return Resources.of(free)


@settings(max_examples=4)
@given(st.integers(0, 2**30))
def test_a_job_that_needs_the_whole_pool_starts_and_nothing_starves_behind_it(seed: int) -> None:
    policy = Policy()
    week = Week(policy, Random(seed))
    week.run(load=0.75)
    # Room is held after the patience; then it waits for running jobs, and for jobs that precede it by priority.
    most_s = policy.patience_s + LONGEST_H * HOUR_S + policy.head_start_s + STEP_S
    assert week.waited_s[f"{BIG}-0"] <= most_s
    assert week.waited_s["lonely"] <= most_s
    assert max(week.waited_s.values()) <= 2 * most_s
    assert all(WEEK_S - pod.since_s <= 2 * most_s for pod in week.waiting.values())


def test_without_held_room_such_a_job_never_starts() -> None:
    week = Week(Policy(patience_s=2 * WEEK_S), Random(1))
    week.run(load=0.75)
    assert f"{BIG}-0" not in week.waited_s
