"""Properties of every plan, for any pods and hosts."""

from __future__ import annotations

import time

from hypothesis import given, settings

from controllers.planner import Budget, Fate, Snapshot, plan
from tests.scheduling.planner.support import SNAPSHOTS, carried_out, violations

UNLIMITED = Budget(60.0, time.process_time)


@settings(max_examples=150)
@given(SNAPSHOTS)
def test_pods_are_only_where_they_may_be_gangs_are_whole_and_quotas_are_kept(snapshot: Snapshot) -> None:
    assert violations(snapshot, plan(snapshot)) == []


@settings(max_examples=25)
@given(SNAPSHOTS)
def test_an_exact_plan_keeps_all_rules_and_costs_no_more_than_the_heuristic(snapshot: Snapshot) -> None:
    heuristic, exact = plan(snapshot), plan(snapshot, budget=UNLIMITED)
    assert violations(snapshot, exact) == []
    assert exact.weighed <= heuristic.weighed
    assert exact.bound is not None
    assert 0 <= exact.bound <= exact.weighed
    fates = {name: verdict.fate in (Fate.ROOM, Fate.NEW) for name, verdict in heuristic.verdicts.items()}
    assert {name: verdict.fate in (Fate.ROOM, Fate.NEW) for name, verdict in exact.verdicts.items()} == fates


@settings(max_examples=60)
@given(SNAPSHOTS)
def test_equal_snapshots_have_equal_plans(snapshot: Snapshot) -> None:
    assert plan(snapshot) == plan(snapshot)


@settings(max_examples=60)
@given(SNAPSHOTS)
def test_a_plan_that_was_carried_out_adds_nothing_more_for_its_pods(snapshot: Snapshot) -> None:
    first = plan(snapshot)
    later = carried_out(snapshot, first)
    again = plan(later)
    assert violations(later, again) == []
    placed = {pod for pod, verdict in first.verdicts.items() if verdict.host}
    assert {pod for host in again.hosts for pod in host.pods} & placed == set()
    moved = {verdict.host.removeprefix("made-") for pod, verdict in again.verdicts.items() if pod in placed}
    assert moved == {first.verdicts[pod].host for pod in placed}


@settings(max_examples=60)
@given(SNAPSHOTS)
def test_every_reason_is_a_complete_sentence(snapshot: Snapshot) -> None:
    for verdict in plan(snapshot).verdicts.values():
        assert verdict.reason
        assert "None" not in verdict.reason
        assert "  " not in verdict.reason
