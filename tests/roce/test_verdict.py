"""Injected faults are named, and nothing else. Healthy hosts reach 97.0 to 98.0 % of the line."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from network.roce import wire
from network.roce.rounds import rounds
from network.roce.verdict import Blame, Cause, Direction, PairOutcome, judge

HALF = 0.49
"""PCIe at half its width."""
AT_1024 = 0.925


def measured(
    hosts: int, rails: tuple[str, ...], share: Callable[[str, str, str], float | None], seed: int = 0
) -> list[PairOutcome]:
    """Return all pairs of a fabric. share(rail, sender, receiver): share of the line that a fault leaves, None without a fault."""
    chance = random.Random(seed)
    outcomes = []
    for rail in rails:
        for each in rounds([f"h{number}" for number in range(hosts)]):
            for sender, receiver in each:
                worse = share(rail, sender, receiver)
                healthy = chance.uniform(wire.MARK, 0.98)
                outcomes.append(PairOutcome(rail, sender, receiver, healthy if worse is None else worse))
    return outcomes


def verdict(outcomes: list[PairOutcome]) -> list[Blame]:
    return list(judge(outcomes, wire.mark(4096), 4096))


def named(outcomes: list[PairOutcome]) -> list[tuple[Cause, str, tuple[str, ...], Direction]]:
    return [(blame.cause, blame.rail, blame.who, blame.direction) for blame in verdict(outcomes)]


@settings(max_examples=40)
@given(st.integers(2, 24), st.integers(0, 10**6))
def test_nothing_is_blamed_on_a_healthy_fabric(hosts: int, seed: int) -> None:
    assert verdict(measured(hosts, ("r0", "r1"), lambda *_: None, seed)) == []


@settings(max_examples=40)
@given(st.integers(4, 24), st.integers(0, 10**6), st.sampled_from([HALF, AT_1024, 0.0, 0.969]), st.data())
def test_a_slow_port_is_named_and_nothing_else(hosts: int, seed: int, share: float, data: st.DataObject) -> None:
    bad = f"h{data.draw(st.integers(0, hosts - 1))}"
    blame = named(measured(hosts, ("r0", "r1"), lambda r, a, b: share if r == "r0" and bad in (a, b) else None, seed))
    assert blame == [(Cause.PORT, "r0", (bad,), Direction.BOTH)]


@settings(max_examples=40)
@given(st.integers(8, 24), st.integers(0, 10**6), st.sampled_from(["sends", "receives"]), st.data())
def test_a_port_that_is_slow_in_one_direction_is_named_with_the_direction(
    hosts: int, seed: int, way: str, data: st.DataObject
) -> None:
    bad = f"h{data.draw(st.integers(0, hosts - 1))}"
    at = 0 if way == "sends" else 1
    (blame,) = named(measured(hosts, ("r0",), lambda _, *pair: HALF if pair[at] == bad else None, seed))
    assert blame == (Cause.PORT, "r0", (bad,), Direction.SENDING if way == "sends" else Direction.RECEIVING)


@settings(max_examples=40)
@given(st.integers(4, 24), st.integers(0, 10**6), st.data())
def test_a_slow_pair_between_fast_hosts_is_named_as_a_pair(hosts: int, seed: int, data: st.DataObject) -> None:
    first, second = data.draw(st.lists(st.integers(0, hosts - 1), min_size=2, max_size=2, unique=True))
    bad = {f"h{first}", f"h{second}"}
    ((cause, rail, who, _),) = named(measured(hosts, ("r0",), lambda _, a, b: HALF if {a, b} == bad else None, seed))
    assert (cause, rail, set(who)) == (Cause.PAIR, "r0", bad)


@settings(max_examples=40)
@given(st.integers(3, 24), st.integers(0, 10**6))
def test_a_slow_rail_is_named_once_and_no_host_on_it(hosts: int, seed: int) -> None:
    blame = named(measured(hosts, ("r0", "r1"), lambda rail, *_: AT_1024 if rail == "r1" else None, seed))
    assert blame == [(Cause.RAIL, "r1", (), Direction.BOTH)]


@settings(max_examples=40)
@given(st.integers(4, 16), st.integers(0, 10**6), st.data())
def test_a_host_that_is_slow_on_all_its_rails_is_named_itself(hosts: int, seed: int, data: st.DataObject) -> None:
    bad = f"h{data.draw(st.integers(0, hosts - 1))}"
    blame = named(measured(hosts, ("r0", "r1", "r2"), lambda _, *pair: HALF if bad in pair else None, seed))
    assert blame == [(Cause.HOST, "", (bad,), Direction.BOTH)]


@pytest.mark.parametrize("bad", [{"h1", "h5"}, {"h0", "h1", "h2"}, {"h3", "h9", "h11"}])
def test_several_slow_hosts_are_each_named(bad: set[str]) -> None:
    blame = named(measured(16, ("r0",), lambda _, *pair: HALF if bad & set(pair) else None))
    assert {who[0] for _, _, who, _ in blame} == bad
    assert {cause for cause, *_ in blame} == {Cause.PORT}


@pytest.mark.parametrize("bad", [3, 5])
def test_hosts_are_named_as_long_as_some_pairs_are_fast(bad: int) -> None:
    """Three slow hosts of eight slow down 18 of 28 pairs, five of them 25."""
    slow = {f"h{number}" for number in range(bad)}
    blame = named(measured(8, ("r0",), lambda _, *pair: HALF if slow & set(pair) else None))
    assert sorted(who[0] for _, _, who, _ in blame) == sorted(slow)


def test_with_two_hosts_the_pair_is_named() -> None:
    (blame,) = verdict(measured(2, ("r0",), lambda *_: HALF))
    assert (blame.cause, blame.who) == (Cause.PAIR, ("h0", "h1"))


def test_failed_pairs_count_as_slow_and_say_why() -> None:
    outcomes = [
        PairOutcome(o.rail, o.sender, o.receiver, None, "packets don't arrive") if "h2" in (o.sender, o.receiver) else o
        for o in measured(8, ("r0",), lambda *_: None)
    ]
    (blame,) = verdict(outcomes)
    assert str(blame) == "port or cable of h2 on rail r0: no result (7 of 7 pairs); packets don't arrive"


def test_a_smaller_roce_mtu_is_reported() -> None:
    outcomes = [
        PairOutcome(o.rail, o.sender, o.receiver, o.share, mtu=1024 if "h2" in (o.sender, o.receiver) else 4096)
        for o in measured(8, ("r0",), lambda _, *pair: AT_1024 if "h2" in pair else None)
    ]
    (blame,) = verdict(outcomes)
    assert (
        str(blame) == "port or cable of h2 on rail r0: 92.5% of the line (7 of 7 pairs); RoCE MTU 1024 instead of 4096"
    )


def test_an_interrupted_run_names_what_it_measured() -> None:
    first = measured(16, ("r0",), lambda _, *pair: HALF if "h3" in pair else None)[: 3 * 8]
    assert named(first) == [(Cause.PORT, "r0", ("h3",), Direction.BOTH)]


def test_equal_results_in_another_order_give_an_equal_verdict() -> None:
    outcomes = measured(12, ("r0",), lambda _, *pair: HALF if {"h1", "h4"} & set(pair) else None)
    mixed = random.Random(3).sample(outcomes, len(outcomes))
    assert set(named(mixed)) == set(named(outcomes))
