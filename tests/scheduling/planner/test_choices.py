"""The planner's preferences where it has a choice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controllers.planner import Gang, HostSupply, Plan, Policy, Preference, Shape, Snapshot, plan
from controllers.planner.feasibility import Ground, obstacles
from controllers.planner.resources import CPU, Resources, describe
from controllers.planner.supply import Taint, labels
from controllers.planner.wishes import Operator, Requirement, Toleration
from tests.scheduling.planner.support import NOW_S, REGION, ask, pods, pool, room

SMALL, LARGE = pool("small", 1.0, 9, room(4, 16)), pool("large", 1.9, 9, room(8, 32))
EAST = replace(pool("east", 1.0), labels=labels({REGION: "east"}))
WEST = replace(pool("west", 1.2), labels=labels({REGION: "west"}))


def added(result: Plan) -> Counter[str]:
    return Counter(host.pool for host in result.hosts)


def of(*pools: object, **more: object) -> Plan:
    return plan(Snapshot(NOW_S, pools, **more))  # type: ignore[arg-type]


def test_the_cheapest_hosts_are_added_and_the_last_one_is_no_larger_than_needed() -> None:
    assert added(of(SMALL, LARGE, pods=pods(5, Shape(ask(4))))) == {"large": 2, "small": 1}


def test_existing_room_is_free_and_used_first() -> None:
    result = of(SMALL, hosts=(HostSupply("there", "small", SMALL.room),), pods=pods(2, Shape(ask(2))))
    assert (result.hosts, result.bill) == ((), 0)


def test_a_closed_host_is_not_used_but_counts_for_its_pool() -> None:
    result = of(
        replace(SMALL, most=1),
        hosts=(HostSupply("there", "small", SMALL.room, open=False),),
        pods=pods(1, Shape(ask(2))),
    )
    assert result.hosts == ()
    assert {verdict.host for verdict in result.verdicts.values()} == {""}


@pytest.mark.parametrize(("worth", "expected"), [(100_000, "east"), (300_000, "west")])
def test_a_preference_is_followed_up_to_its_worth(worth: int, expected: str) -> None:
    shape = Shape(ask(8), preferences=(Preference(REGION, ("west",), worth),))
    assert added(of(EAST, WEST, pods=pods(1, shape))) == {expected: 1}


def test_a_pod_whose_preference_can_not_be_met_is_placed_elsewhere() -> None:
    shape = Shape(ask(8), preferences=(Preference(REGION, ("moon",), 99_000_000),))
    assert added(of(EAST, pods=pods(1, shape))) == {"east": 1}
    result = of(
        replace(EAST, most=0), replace(WEST, most=1), hosts=(HostSupply("w", "west", WEST.room),), pods=pods(1, shape)
    )
    assert {verdict.host for verdict in result.verdicts.values()} == {"w"}


def test_spot_hosts_are_used_while_they_save_more_than_interruptions_cost() -> None:
    spot = replace(pool("spot", 0.5), spot=True, interruptions=0.05)
    waiting = pods(1, Shape(ask(8)))
    assert added(of(pool("firm", 1.0), spot, pods=waiting)) == {"spot": 1}
    assert added(of(pool("firm", 1.0), replace(spot, interruptions=1.5), pods=waiting)) == {"firm": 1}
    firm_work = Snapshot(NOW_S, (pool("firm", 1.0), spot), pods=waiting)
    assert added(plan(firm_work, Policy(redo_h=30.0))) == {"firm": 1}


def test_a_gang_bears_the_risk_of_all_its_hosts() -> None:
    firm, spot = pool("firm", 1.0, 8), replace(pool("spot", 0.6, 8), spot=True, interruptions=0.2)
    shape = Shape(ask(8))
    assert added(of(firm, spot, pods=pods(4, shape))) == {"spot": 4}
    gang = pods(4, shape, gang="job")
    assert added(of(firm, spot, pods=gang, gangs=(Gang("job", 4),))) == {"firm": 4}


def test_pods_of_one_group_never_share_a_host() -> None:
    shape = Shape(ask(1), apart="dns")
    there = HostSupply("there", "small", SMALL.room, apart=frozenset({"dns"}))
    assert added(of(SMALL, hosts=(there,), pods=pods(3, shape))) == {"small": 3}


def test_a_snapshot_that_contradicts_itself_is_refused_with_every_contradiction() -> None:
    twice = pods(1, Shape(ask(1)), gang="nobody")
    with pytest.raises(ValueError, match="pool small") as refused:
        Snapshot(
            NOW_S,
            (SMALL, SMALL),
            (HostSupply("h", "large", Resources()), HostSupply("g", "small", Resources(), "r9")),
            twice * 2,
        )
    assert str(refused.value).splitlines() == [
        "pool small is listed 2 times",
        "pod pod-0 is listed 2 times",
        "host h belongs to pool large, which does not exist",
        "host g is at place 'r9', which pool small doesn't have",
        "pods belong to gang nobody, which does not exist",
    ]


@pytest.mark.parametrize(
    ("need", "met"),
    [
        (Requirement("gpu", Operator.IN, ("a100", "h100")), True),
        (Requirement("gpu", Operator.IN, ("a100",)), False),
        (Requirement("gpu", Operator.NOT_IN, ("a100",)), True),
        (Requirement("rack", Operator.NOT_IN, ("r1",)), True),
        (Requirement("gpu", Operator.EXISTS), True),
        (Requirement("rack", Operator.EXISTS), False),
        (Requirement("rack", Operator.DOES_NOT_EXIST), True),
        (Requirement("cores", Operator.GT, ("7",)), True),
        (Requirement("cores", Operator.GT, ("8",)), False),
        (Requirement("cores", Operator.LT, ("9",)), True),
        (Requirement("gpu", Operator.LT, ("9",)), False),
        (Requirement("rack", Operator.LT, ("9",)), False),
    ],
)
def test_requirements_are_met_as_kubernetes_meets_them(need: Requirement, met: bool) -> None:
    assert need.met({"gpu": "h100", "cores": "8"}) is met


@pytest.mark.parametrize(
    ("toleration", "enough"),
    [
        (Toleration(), True),
        (Toleration("team"), True),
        (Toleration("team", "a"), True),
        (Toleration("team", "b"), False),
        (Toleration("gpu"), False),
        (Toleration("team", "a", "NoExecute"), False),
        (Toleration("team", effect="NoSchedule"), True),
    ],
)
def test_taints_are_tolerated_as_kubernetes_tolerates_them(toleration: Toleration, enough: bool) -> None:
    blocked_by = obstacles(Shape(ask(1), tolerations=(toleration,)), Ground(SMALL, (), (Taint("team", "a"),)))
    assert (blocked_by == ()) is enough


def test_one_alternative_of_a_selector_is_enough() -> None:
    needs = ((Requirement("a", Operator.EXISTS),), (Requirement("b", Operator.EXISTS),))
    assert obstacles(Shape(ask(1), needs), Ground(SMALL, (("b", "1"),), ())) == ()


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        (CPU, 2500, "2.5 CPUs"),
        ("memory", 512, "512 MiB of memory"),
        ("memory", 2048, "2 GiB of memory"),
        ("nvidia.com/gpu", 1, "1 GPU"),
        ("example.com/nic", 2, "2 example.com/nic"),
    ],
)
def test_amounts_are_shown_in_common_units(name: str, amount: int, text: str) -> None:
    assert describe(name, amount) == text
