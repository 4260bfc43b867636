"""The lower bound and its certificate, compared with sums and searches that share only the problem with them."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.planner import Budget, Fate, PoolSupply, Shape, Snapshot, plan
from controllers.planner.admission import admit
from controllers.planner.bound import bounded
from controllers.planner.certificate import Certificate
from controllers.planner.feasibility import Ground, obstacles
from controllers.planner.knapsack import UNIT, Search
from controllers.planner.packing import PackingState
from controllers.planner.policy import Policy
from controllers.planner.relaxed import Merged, relaxed
from controllers.planner.rounding import loads_of
from controllers.planner.tables import Tables
from controllers.planner.verify import unproved
from tests.scheduling.planner.support import NOW_S, SNAPSHOTS, ask, pods, room

UNLIMITED = Budget(60.0, time.process_time)
SEEDS = st.integers(0, 2**40)


def most_by_trying(certificate: Certificate, number: int) -> int:
    """Return the worth of the best load of a bin, by trying every load."""
    problem = certificate.problem
    each, gains = problem.bins[number], certificate.gains(number)
    counts = [range(count + 1 if gain else 1) for count, gain in zip(problem.counts, gains, strict=True)]
    best = 0
    for load in product(*counts):
        used = [sum(n * size[at] for n, size in zip(load, problem.sizes, strict=True)) for at in range(len(each.room))]
        if all(amount <= free for amount, free in zip(used, each.room, strict=True)):
            best = max(best, sum(n * gain for n, gain in zip(load, gains, strict=True)))
    return best


def problem_of(snapshot: Snapshot) -> tuple[Tables, Merged, PackingState]:
    """Return the tables, the relaxed problem and the heuristic's packing."""
    tables = Tables(snapshot, Policy())
    state = PackingState.of(tables)
    admission = admit(
        tables, state, [list(several) if any(tables.may[k]) else [] for k, several in enumerate(tables.pods)]
    )
    placed = [count + fixed for count, fixed in zip(admission.demand, admission.fixed, strict=True)]
    return tables, relaxed(tables, state, placed), admission.state


@settings(max_examples=80)
@given(SEEDS)
def test_the_search_finds_the_best_of_all_loads(seed: int) -> None:
    random = Random(seed)
    items = [
        (kind, random.randint(0, 50), (random.randint(1, 5), random.randint(0, 5)), random.randint(0, 4))
        for kind in range(random.randint(1, 4))
    ]
    space = (random.randint(0, 12), random.randint(0, 12))
    prices = [random.randint(0, 9) * UNIT for _ in space]
    best = max(
        sum(n * gain for n, (_, gain, _, _) in zip(load, items, strict=True))
        for load in product(*(range(most + 1) for *_, most in items))
        if all(sum(n * item[2][at] for n, item in zip(load, items, strict=True)) <= space[at] for at in (0, 1))
    )
    result = Search(space, items, prices, nodes=100_000).run()
    assert (result.worth, result.upper) == (best, best)
    assert Search(space, items, prices, nodes=1).run().upper >= best


@settings(max_examples=40)
@given(SNAPSHOTS)
def test_a_certificate_holds_for_every_load(snapshot: Snapshot) -> None:
    tables, merged, packed = problem_of(
        replace(snapshot, pods=snapshot.pods[:9])
    )  # more pods would have too many loads to try
    proof = bounded(merged.problem, loads_of(tables, merged, packed), lambda: False)
    certificate = proof.certificate
    assert certificate.holds(lambda number: most_by_trying(certificate, number))
    assert unproved(certificate) == []


def test_a_certificate_that_claims_too_much_does_not_hold() -> None:
    snapshot = Snapshot(NOW_S, (PoolSupply("a", room(4, 16), 1_000_000, 5),), pods=pods(4, Shape(ask(2))))
    tables, merged, packed = problem_of(snapshot)
    proof = bounded(merged.problem, loads_of(tables, merged, packed), lambda: False)
    assert proof.certificate.bound == pytest.approx(2_000_000, rel=1e-4)
    greedy = replace(proof.certificate, prices=tuple(2 * price for price in proof.certificate.prices))
    assert greedy.bound > 2_000_000
    assert "4 pods at    1.0000" in str(greedy)
    assert not greedy.holds(lambda number: most_by_trying(greedy, number))
    assert unproved(greedy) == [0]


@settings(max_examples=40)
@given(SNAPSHOTS)
def test_a_bound_that_was_cut_short_is_still_a_bound(snapshot: Snapshot) -> None:
    tables, merged, packed = problem_of(snapshot)
    loads = list(loads_of(tables, merged, packed))
    early = bounded(merged.problem, loads, lambda: True)
    assert 0 <= early.certificate.bound <= bounded(merged.problem, loads, lambda: False).solved.objective * 1e6 + 2


def cheapest_by_trying(pools: tuple[PoolSupply, ...], shape_counts: list[tuple[Shape, int]]) -> int | None:
    """Return the least cost of all pods, by trying every number of hosts of each pool and every way to fill them."""
    best = None
    for counts in product(*(range(pool.most + 1) for pool in pools)):
        price = sum(pool.price * count for pool, count in zip(pools, counts, strict=True))
        if best is not None and price >= best:
            continue
        hosts = [pool for pool, count in zip(pools, counts, strict=True) for _ in range(count)]
        waiting = [shape for shape, count in shape_counts for _ in range(count)]
        if fit(waiting, [(host, dict(host.room.amounts)) for host in hosts]):
            best = price
    return best


def fit(waiting: list[Shape], hosts: list[tuple[PoolSupply, dict[str, int]]]) -> bool:
    if not waiting:
        return True
    shape, *others = waiting
    tried: list[tuple[str, dict[str, int]]] = []
    for pool, free in hosts:
        if (pool.name, free) in tried or obstacles(shape, Ground(pool, pool.labels, pool.taints)):
            continue
        tried.append((pool.name, dict(free)))
        if all(free.get(name, 0) >= amount for name, amount in shape.size.amounts):
            for name, amount in shape.size.amounts:
                free[name] -= amount
            if fit(others, hosts):
                return True
            for name, amount in shape.size.amounts:
                free[name] += amount
    return False


@settings(max_examples=40)
@given(SEEDS)
def test_for_tiny_problems_the_cheapest_plan_lies_between_bound_and_plan(seed: int) -> None:
    random = Random(seed)
    pools = tuple(
        PoolSupply(f"p{at}", room(random.randint(4, 8), random.randint(8, 32)), random.randint(1, 9) * 100_000, 3)
        for at in (0, 1)
    )
    shapes = [(Shape(ask(random.randint(1, 4), random.randint(1, 12))), random.randint(1, 3)) for _ in (0, 1)]
    best = cheapest_by_trying(pools, shapes)
    waiting = tuple(pod for at, (shape, count) in enumerate(shapes) for pod in pods(count, shape, f"s{at}"))
    result = plan(Snapshot(NOW_S, pools, pods=waiting), budget=UNLIMITED)
    if best is None:
        assert any(verdict.fate not in (Fate.NEW, Fate.ROOM) for verdict in result.verdicts.values())
    elif all(verdict.host for verdict in result.verdicts.values()):
        assert result.bound is not None
        assert result.bound <= best <= result.weighed
        assert result.weighed <= best * 1.3


def test_without_any_time_the_heuristics_plan_is_returned() -> None:
    snapshot = Snapshot(NOW_S, (PoolSupply("a", room(7, 16), 1_000_000, 9),), pods=pods(9, Shape(ask(2, 3))))
    ticks = iter(range(10**6))
    result = plan(snapshot, budget=Budget(0.0, lambda: next(ticks)))
    assert result.hosts == plan(snapshot).hosts
    assert result.bound is not None
    assert result.bound <= result.weighed
