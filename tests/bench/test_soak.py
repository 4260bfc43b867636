from __future__ import annotations

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.verify.run import FAULTS
from tests.bench import soak
from tests.bench.faults import PAIRABLE
from tests.bench.soak import NOTHING_S, REPAIR, Fault, Outcome, faults, record, wrong

HOSTS = ("api-1", "worker-1")
PAIRS = len(PAIRABLE) // 2
ROUND = len(FAULTS) + 2 + PAIRS


@given(st.integers())
def test_the_same_seed_gives_the_same_faults(seed: int) -> None:
    assert list(islice(faults(seed, HOSTS), 20)) == list(islice(faults(seed, HOSTS), 20))


@given(st.integers(), st.integers(0, 5))
def test_every_round_has_every_kind_once(seed: int, number: int) -> None:
    round_ = list(islice(faults(seed, HOSTS), number * ROUND, (number + 1) * ROUND))
    assert len({fault.name for fault in round_}) == ROUND - PAIRS + 1
    assert all(fault.proof or fault.pair or 0 < fault.after_s <= NOTHING_S for fault in round_)
    paired = [each for fault in round_ for each in fault.pair]
    assert len(paired) == len(set(paired)) == 2 * PAIRS
    assert all(fault.host in HOSTS for fault in round_ if fault.name == REPAIR)


def test_rounds_differ_in_their_order() -> None:
    drawn = [fault.name for fault in islice(faults(1, HOSTS), 10 * ROUND)]
    assert len({tuple(drawn[at : at + ROUND]) for at in range(0, len(drawn), ROUND)}) > 1


def test_the_record_counts_each_kind_and_its_failures() -> None:
    outcomes = [Outcome(Fault("a"), 3.0), Outcome(Fault("b"), 1.0), Outcome(Fault("a"), 2.0, "broken")]
    _, first, second = record(outcomes).splitlines()
    assert first.split() == ["2", "1", "2.0", "to", "3.0", "a"]
    assert second.split() == ["1", "1", "1.0", "to", "1.0", "b"]


def test_unhealthy_items_after_an_up_are_named() -> None:
    items = [{"name": "api-1", "ok": True, "detail": ""}, {"name": "worker-1", "ok": False, "detail": "NotReady"}]
    assert wrong({"status": {"items": items}}) == "worker-1: NotReady"
    assert wrong({"status": {"items": items[:1]}}) == ""


@pytest.mark.parametrize(
    ("outcomes", "error"),
    [
        ({"events-down": "proved"}, ""),
        ({"events-down": "skipped"}, "events-down skipped: seen"),
        ({"events-down": "proved", "growth": "skipped"}, "growth skipped: seen"),
        ({}, "verify did not try events-down"),
    ],
)
def test_a_fault_that_was_skipped_is_no_success_whatever_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, str], error: str
) -> None:
    document = {"proofs": [{"name": name, "outcome": each, "seen": "seen"} for name, each in outcomes.items()]}
    monkeypatch.setattr(soak, "_menagerie", lambda *_: (0, json.dumps(document), ""))
    assert soak._attempt(Fault("the events etcd stops", proof="events-down")).error == error
