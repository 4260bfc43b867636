"""What holds for every plan, whatever waits and whatever there is."""

from __future__ import annotations

import time

from hypothesis import given, settings

from controllers.planner import Budget, Fate, Snapshot, plan
from tests.scheduling.planner.support import SNAPSHOTS, carried_out, wrongs

UNLIMITED = Budget(60.0, time.process_time)


@settings(max_examples=150)
@given(SNAPSHOTS)
def test_no_pod_is_where_it_may_not_be_no_gang_is_split_and_no_pool_is_above_its_quota(snapshot: Snapshot) -> None:
    assert wrongs(snapshot, plan(snapshot)) == []


@settings(max_examples=25)
@given(SNAPSHOTS)
def test_an_exact_plan_keeps_all_rules_costs_no_more_and_lies_above_its_bound(snapshot: Snapshot) -> None:
    heuristic, exact = plan(snapshot), plan(snapshot, budget=UNLIMITED)
    assert wrongs(snapshot, exact) == []
    assert exact.weighed <= heuristic.weighed
    assert exact.bound is not None
    assert 0 <= exact.bound <= exact.weighed
    fates = {name: verdict.fate in (Fate.ROOM, Fate.NEW) for name, verdict in heuristic.verdicts.items()}
    assert {name: verdict.fate in (Fate.ROOM, Fate.NEW) for name, verdict in exact.verdicts.items()} == fates


@settings(max_examples=60)
@given(SNAPSHOTS)
def test_the_same_snapshot_has_the_same_plan(snapshot: Snapshot) -> None:
    assert plan(snapshot) == plan(snapshot)


@settings(max_examples=60)
@given(SNAPSHOTS)
def test_a_plan_that_was_carried_out_leaves_nothing_to_add_for_those_that_it_placed(snapshot: Snapshot) -> None:
    first = plan(snapshot)
    later = carried_out(snapshot, first)
    again = plan(later)
    assert wrongs(later, again) == []
    placed = {pod for pod, verdict in first.verdicts.items() if verdict.host}
    assert {pod for host in again.hosts for pod in host.pods} & placed == set()
    moved = {verdict.host.removeprefix("made-") for pod, verdict in again.verdicts.items() if pod in placed}
    assert moved == {first.verdicts[pod].host for pod in placed}


@settings(max_examples=60)
@given(SNAPSHOTS)
def test_every_reason_is_one_sentence_without_a_hole_in_it(snapshot: Snapshot) -> None:
    for verdict in plan(snapshot).verdicts.values():
        assert verdict.reason
        assert "None" not in verdict.reason
        assert "  " not in verdict.reason
