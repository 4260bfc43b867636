from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controllers.planner import Plan, PoolSupply, Shape, Snapshot, plan
from tests.bench import pending
from tests.bench.packers import SPARE, Packed, autoscaler_of_2017, first_fit_decreasing
from tests.bench.planner import ABOVE_AIM, EACH_AIM_US, EXACT_AIM_S, summary
from tests.scheduling.planner.support import ask, pods, pool, room

SMALL, LARGE = pool("small", 1.0, 20, room(4, 64)), pool("large", 1.5, 20, room(8, 64))


def test_the_made_up_hour_is_reproducible_and_has_the_documented_size() -> None:
    hour = pending.snapshot()
    assert hour == pending.snapshot()
    assert 31_000 <= len(hour.pods) < 31_500
    assert len(hour.pools) == len({pool.name for pool in hour.pools}) == 14
    assert sum(1 for gang in hour.gangs if gang.within) == pending.GANGS // 2


def test_every_pod_of_a_smaller_hour_finds_room() -> None:
    hour = pending.snapshot(pods=600, gangs=6)
    assert all(verdict.host for verdict in plan(hour).verdicts.values())


def hour(*pools: PoolSupply, **counts: int) -> Snapshot:
    shapes = {"one": Shape(ask(1)), "three": Shape(ask(3)), "four": Shape(ask(4))}
    waiting = tuple(pod for name, count in counts.items() for pod in pods(count, shapes[name], name))
    return Snapshot(0, pools, pods=waiting)


def test_first_fit_decreasing_places_large_pods_first_and_fills_the_gaps() -> None:
    assert first_fit_decreasing(hour(SMALL, one=3, three=3)).hosts == {"small": 3}


def test_the_autoscaler_of_2017_takes_pods_in_order_and_adds_spare_hosts() -> None:
    # One by one onto the cheapest hosts: 1+1+1 on the first, where no 3 fits then.
    assert autoscaler_of_2017(hour(SMALL, LARGE, one=3, three=3)).hosts == {"small": 4 + SPARE}


def test_it_continues_with_the_next_type_when_one_is_used_up() -> None:
    packed = autoscaler_of_2017(hour(replace(SMALL, most=1), LARGE, four=3))
    assert packed.hosts == {"small": 1, "large": 1 + SPARE}
    assert packed.spare == {"small": 0, "large": SPARE}
    assert packed.needed == SMALL.price + LARGE.price
    assert packed.unplaced == 0


def test_pods_without_remaining_quota_are_counted() -> None:
    little = replace(SMALL, most=1)
    assert first_fit_decreasing(hour(little, four=3)).unplaced == 2
    assert autoscaler_of_2017(hour(little, four=3)).unplaced == 2


def test_costs_are_relative_to_the_bound_and_only_the_planner_has_aims() -> None:
    heuristic = plan(hour(SMALL, four=3))
    exact = replace(heuristic, bound=2_000_000)
    prices = {"small": 1_000_000}
    packed = {"ffd": Packed(prices, {"small": 4}), "2017": Packed(prices, {"small": 9}, spare={"small": SPARE})}
    cpu = {"heuristic": [0.003], "ffd": [1.0], "2017": [2.0]}
    figures = {
        figure.name.removeprefix("plan, "): figure
        for figure in summary(hour(SMALL, four=3), heuristic, exact, 3.0, packed, cpu)
    }
    assert figures["cost above the lower bound, exact"].values == (50.0,)
    assert figures["cost above the lower bound, first fit decreasing"].values == (100.0,)
    of_2017 = {name: figure.values for name, figure in figures.items() if "lower bound, autoscaler of 2017" in name}
    assert list(of_2017.values()) == [(350.0,), (100.0,)]
    assert [name.rpartition("2017 ")[2] for name in of_2017] == ["with its 5 spare hosts a type", "without them"]
    assert figures["CPU a pod, heuristic"].values == pytest.approx((1000.0,))
    assert Counter(figure.aim for figure in figures.values() if figure.aim) == Counter(
        (ABOVE_AIM, EACH_AIM_US, EXACT_AIM_S)
    )


def test_costs_of_different_pods_are_not_compared() -> None:
    full = hour(replace(SMALL, most=1), four=3)
    with pytest.raises(ValueError, match="must all find room"):
        summary(full, plan(full), replace(plan(full), bound=1), 1.0, {}, {"heuristic": [1.0]})
    assert isinstance(plan(full), Plan)
