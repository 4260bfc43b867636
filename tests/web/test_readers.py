"""What readers keep: the last value with its age, why the newest attempt failed, and that a silent cluster delays no page."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from obstore.store import MemoryStore

from cluster.errors import FailedError
from components.drawing.layout import draw
from components.drawing.live import Health
from controllers.autoscaler.world import Node
from controllers.bookkeeping.store import LedgerStore
from controllers.planner.resources import Resources
from controllers.web import operator
from controllers.web.operator import Reach, Ways
from controllers.web.parts import PATIENCE_S, Part, Reader
from controllers.web.reading import ClusterReader, state_of
from operations.record.store import RecordStore
from operations.status.model import Status
from tests.waiting import until
from tests.web.support import capacity


def test_a_value_that_was_read_stays_when_a_later_reading_fails():
    results = iter([1, FailedError("silent", code="api"), 2])

    def read():
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    times = iter(range(100))
    reader = Reader("x", read, str, clock=lambda: float(next(times)))
    reader.once()
    assert reader.part == Part(1, 1.0)
    reader.once()
    assert reader.part == Part(1, 1.0, "silent")
    reader.once()
    assert reader.part == Part(2, 4.0)


def test_a_reading_that_hangs_is_named_after_a_while_and_ends_nothing():
    began, go_on = threading.Event(), threading.Event()

    def read():
        began.set()
        assert go_on.wait(60)
        return "late"

    reader = Reader("x", read, str)
    reader.start()
    assert began.wait(60)
    part = reader.part
    assert (part.value, part.trouble(part.began_s + 1)) == (None, "")
    assert part.trouble(part.began_s + PATIENCE_S + 5) == f"no answer for {PATIENCE_S + 5:.0f} s"
    go_on.set()
    until(lambda: reader.part.value == "late")
    assert reader.part.trouble(part.began_s + 1000) == ""
    reader.stop()


def test_a_reader_pauses_longer_after_a_slow_reading(monkeypatch):
    reader = Reader("x", lambda: None, str, pause_s=15.0)
    pauses = []
    took = iter([0.1, 60.0])
    monkeypatch.setattr(reader, "once", lambda: next(took))
    monkeypatch.setattr(reader._over, "wait", lambda pause: pauses.append(pause) or len(pauses) == 2 and reader.stop())
    reader._run()
    assert pauses == [15.0, 240.0]


class Clusters:
    """What an operator's calls return. error: raised by each of them."""

    def __init__(self, monkeypatch, cluster):
        self.error, self.accesses = None, 0
        monkeypatch.setattr(operator.stack, "access_if_built", lambda _: self._access())
        monkeypatch.setattr(operator, "read_status", lambda *_: self._answer(Status(cluster.name, "https://x", ())))
        monkeypatch.setattr(operator, "observe", lambda *_: self._answer(None))
        monkeypatch.setattr(operator, "capacity_of", lambda *_: capacity(cluster))
        monkeypatch.setattr(operator, "read_ledger", lambda *_: self._answer(SimpleNamespace(current=None)))
        monkeypatch.setattr(operator, "ledger_of", lambda _: self._answer(self.ledger))
        self.ledger = LedgerStore(RecordStore(MemoryStore(), "memory", shared=True))

    def _access(self):
        self.accesses += 1
        return object()

    def _answer(self, value):
        if self.error:
            raise self.error
        return value


@pytest.fixture
def clusters(monkeypatch, lab):
    return Clusters(monkeypatch, lab)


def reader_of(load) -> ClusterReader:
    return ClusterReader("lab", Reach(Ways(load, draw, str)), str)


def test_a_cluster_is_read_part_by_part_and_its_stack_once(clusters, lab):
    reader = reader_of(lambda: lab)
    reader.start()
    until(lambda: all(part.at_s for part in parts(reader)))
    reader.stop()
    facts = reader.facts()
    assert clusters.accesses == 1
    assert facts.row(facts.status.at_s).state == "well"
    assert len(facts.capacity.value.nodes) == 3
    assert facts.spec.value.cluster is lab
    until(lambda: "pool-workers" in dict(reader.facts().drawn.parts))


def parts(reader):
    facts = reader.facts()
    return facts.spec, facts.status, facts.capacity, facts.operations, facts.bills


def test_a_cluster_that_is_not_built_is_no_error(monkeypatch, lab):
    monkeypatch.setattr(operator.stack, "access_if_built", lambda _: None)
    reach = Reach(Ways(lambda: lab, draw, str))
    assert (reach.status(), reach.capacity(), reach.bills(str)) == (None, None, None)


def test_a_spec_with_errors_is_the_reason_of_every_part_and_is_read_again(lab):
    loads = iter([FailedError("3:1: error", code="file"), lab])

    def load():
        result = next(loads)
        if isinstance(result, Exception):
            raise result
        return result

    reader = reader_of(load)
    reader.spec.once()
    facts = reader.facts()
    assert facts.row(0.0).detail == "3:1: error"
    reader.spec.once()
    assert reader.facts().spec.value.cluster is lab


@pytest.mark.parametrize(
    ("changes", "health", "words"),
    [
        ({}, Health.HEALTHY, "Ready"),
        ({"ready": False}, Health.DOWN, "NotReady"),
        ({"starting": True, "ready": False}, Health.PARTLY, "starting"),
        ({"cordoned": True}, Health.OUT, "cordoned"),
        ({"cordoned": True, "mark": "repair", "ready": False}, Health.OUT, "out of service (repair), NotReady"),
    ],
)
def test_the_state_of_a_node(changes, health, words):
    assert state_of(Node("n", "p", Resources(), **changes)) == (health, words)
