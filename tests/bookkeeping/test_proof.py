"""The proof that the day closes, against an API and a bucket in memory: what it notices, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.errors import TimedOutError
from cluster.spec import Cluster as Spec
from controllers.bookkeeping import proof
from controllers.bookkeeping.run import Bookkeeper
from controllers.metering import day as days
from controllers.metering.day import Day
from operations.verify.proof import Context, FailedProofError
from tests.bookkeeping.surroundings import NODES, PODS, World, keeper, node, pod, rounds
from tests.metering.lives import DAY, HOUR, START

Prove = Callable[..., str]


@pytest.fixture
def spec(build: Callable[..., Spec]) -> Spec:
    return build({"tenancy": {"directory": {"file": "people.yaml"}}, "metering": {"running_every": "1m"}})


def context_of(world: World, spec: Spec) -> Context:
    access: Any = SimpleNamespace()
    return Context(spec, access, world.cluster.api(), lambda: None, None, lambda _: None)  # type: ignore[arg-type,return-value]


@pytest.fixture
def prove(world: World, spec: Spec, monkeypatch: pytest.MonkeyPatch) -> Prove:
    """prove(book): run the proof while a controller makes rounds; None for no controller."""
    monkeypatch.setattr(proof, "ledger_of", lambda _: world.store())

    def proved(book: Bookkeeper | None) -> str:
        def wait(missing: Callable[[], str], timeout_s: float, *_: object, **__: object) -> None:
            for _number in range(int(timeout_s) // 60 + 1):
                if not (last := missing()):
                    return
                if book:
                    book.once(spec)
                world.wait(60)
            raise TimedOutError(last)

        monkeypatch.setattr(proof, "wait_until", wait)
        return proof.the_day_closes(context_of(world, spec))

    return proved


def test_a_running_day_of_a_new_ledger_is_proved(world: World, spec: Spec, prove: Prove) -> None:
    world.wait(600 + 13 * HOUR)
    book = keeper(world, spec)
    rounds(world, spec, book, START + 13 * HOUR + 120, 60)
    observation = prove(book)
    assert "2026-11-27 so far, 13:00:00 to 13:02:00 UTC: 0.100 of 0.100 host hours, and 0.100 of nodes" in observation
    assert "counted again here from 3 segments: the same bytes; its account may not read metrics" in observation


def test_a_controller_that_does_not_run_fails_it(world: World, spec: Spec, prove: Prove) -> None:
    rounds(world, spec, keeper(world, spec), START + 600, 60)
    with pytest.raises(TimedOutError, match="the journal has nothing since 00:09:00; does the controller metering run"):
        prove(None)


def test_a_day_with_a_gap_fails_it(world: World, spec: Spec, prove: Prove) -> None:
    rounds(world, spec, keeper(world, spec), START + 600, 60)
    world.wait(600)
    world.cluster.write(PODS, pod("u1", "worker-1", world.cluster.now))
    world.cluster.forgets = world.cluster.version
    with pytest.raises(FailedProofError, match="2026-11-27 is incomplete: .*nobody watched the cluster"):
        prove(keeper(world, spec))


def forged(monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]) -> None:
    """Let the day that is kept differ from the one that is counted from the journal."""
    real = proof._newest

    def newest(store: Any) -> Day | None:
        if (kept := real(store)) is None:
            return None
        document = {**kept.document}
        change(document)
        return Day(document)

    monkeypatch.setattr(proof, "_newest", newest)


def test_a_day_that_lacks_a_part_fails_it(
    world: World,
    spec: Spec,
    prove: Prove,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    book = keeper(world, spec)
    rounds(world, spec, book, START + 600, 60)
    forged(monkeypatch, lambda document: document.update(rows=document["rows"][1:]))
    with pytest.raises(FailedProofError, match=r"the parts of host_us are .*; 0\.1% may be missing"):
        prove(book)


def test_a_day_with_other_bytes_fails_it(
    world: World,
    spec: Spec,
    prove: Prove,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 600, 60)
    forged(monkeypatch, lambda document: document.update(notices=["edited"]))
    with pytest.raises(FailedProofError, match="has other bytes when it is counted again"):
        prove(book)


def test_a_ledger_without_a_node_that_the_api_lists_fails_it(world: World, spec: Spec, prove: Prove) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 600, 60)
    unknown = node("worker-9")
    world.cluster.things[NODES]["worker-9"] = unknown
    with pytest.raises(
        FailedProofError, match=r"the nodes of the API alone lived 0\.\d+ hours in it, and the ledger has"
    ):
        prove(book)


def test_a_controller_that_may_read_metrics_fails_it(world: World, spec: Spec, prove: Prove) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 600, 60)
    world.cluster.may.add(("metrics.k8s.io", "pods"))
    with pytest.raises(FailedProofError, match=r"may list pods of metrics\.k8s\.io"):
        prove(book)


def test_it_is_skipped_without_a_ledger_and_before_the_first_day(
    world: World,
    build: Callable[..., Spec],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof, "ledger_of", lambda _: world.store())
    tenancy = {"tenancy": {"directory": {"file": "people.yaml"}}}
    assert proof.lacks_a_ledger(context_of(world, build(tenancy))) == "the spec has no metering"
    hourly = build({**tenancy, "metering": {}})
    assert "no day has been counted yet" in proof.lacks_a_ledger(context_of(world, hourly))
    rounds(world, hourly, keeper(world, hourly), START + 2 * HOUR, 600)
    assert proof.lacks_a_ledger(context_of(world, hourly)) == ""
    assert days.running_key(DAY, START + HOUR + 600) in world.keys(days.RUNNING)
