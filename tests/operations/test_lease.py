"""Who may act, by what this process has observed of a Lease and for how long; the API and the clock are fakes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes.client import V1Lease, V1LeaseSpec, V1ObjectMeta
from kubernetes.client.exceptions import ApiException

from clients import lease
from clients.lease import HeldError, Lease

THEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class World:
    """A Lease and a clock. at: what happens when the clock reaches a second; it can be repeated."""

    now: float = 1000.0
    kept: V1Lease | None = None
    at: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    silent: bool = False

    def pause(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self.at if each[0] <= self.now]
        self.at = [each for each in self.at if each[0] > self.now]
        for _, act in due:
            act()

    def put(self, holder: str, renewed: datetime, lasts_s: int = 30) -> None:
        spec = V1LeaseSpec(holder_identity=holder, renew_time=renewed, lease_duration_seconds=lasts_s)
        version = int(self.kept.metadata.resource_version) + 1 if self.kept else 1
        self.kept = V1Lease(metadata=V1ObjectMeta(name="it", resource_version=str(version)), spec=spec)

    def renewing(self, holder: str, every_s: float, renewed: datetime = THEN, step: timedelta = timedelta(1)) -> None:
        """Let a live holder renew, by its own clock."""
        self.put(holder, renewed)
        self.at.append((self.now + every_s, lambda: self.renewing(holder, every_s, renewed + step, step)))

    def read_namespaced_lease(self, *_: object, **__: object) -> V1Lease:
        if self.silent:
            raise ApiException(HTTPStatus.SERVICE_UNAVAILABLE)
        if self.kept is None:
            raise ApiException(HTTPStatus.NOT_FOUND)
        return self.kept

    def create_namespaced_lease(self, _: str, body: V1Lease, **__: object) -> None:
        if self.kept is not None:
            raise ApiException(HTTPStatus.CONFLICT)
        body.metadata.resource_version, self.kept = "1", body

    def replace_namespaced_lease(self, _: str, __: str, body: V1Lease, **___: object) -> None:
        assert self.kept
        if body.metadata.resource_version != self.kept.metadata.resource_version:
            raise ApiException(HTTPStatus.CONFLICT)
        body.metadata.resource_version, self.kept = str(int(body.metadata.resource_version) + 1), body


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr("kubernetes.client.CoordinationV1Api", lambda _: made)
    return made


def made(world: World) -> Lease:
    return Lease(None, "it", "me", clock=lambda: world.now, pause=world.pause)


@pytest.mark.parametrize("away", [timedelta(0), timedelta(days=-400), timedelta(days=400)], ids=str)
def test_a_new_process_takes_over_from_a_dead_holder_after_the_lease_s_duration_on_its_own_clock_and_no_sooner(
    world: World, away: timedelta
) -> None:
    """Independent of the dead holder's clock."""
    world.put("dead", datetime.now(UTC) + away)
    heard: list[str] = []
    with made(world).holding(report=heard.append):
        assert world.now == 1030.0
        assert world.kept and world.kept.spec.holder_identity == "me"
    assert heard == [
        "dead acts on this cluster as it; stop it first, or wait at most 30 s if it is dead; checking whether it is alive"
    ]


@pytest.mark.parametrize("away", [timedelta(0), timedelta(days=-400), timedelta(days=400)], ids=str)
@pytest.mark.parametrize("step", [timedelta(seconds=5), timedelta(seconds=-5)], ids=["forward", "back"])
def test_a_live_holder_is_recognised_by_one_renewal_whatever_its_clock(
    world: World, away: timedelta, step: timedelta
) -> None:
    world.renewing("living", 5.0, datetime.now(UTC) + away, step)
    with pytest.raises(HeldError, match="living acts on this cluster as it"), made(world).holding():
        raise AssertionError("held twice")
    assert world.now == 1005.0
    assert made(world).other() == "living"


def test_a_released_or_free_lease_is_taken_at_once(world: World) -> None:
    for _ in range(2):
        with made(world).holding():
            assert world.kept and world.kept.spec.holder_identity == "me"
        assert world.kept and world.kept.spec.holder_identity == ""
    assert (world.now, made(world).other()) == (1000.0, "")


def test_the_duration_that_the_holder_wrote_counts(world: World) -> None:
    world.put("dead", THEN, lasts_s=60)
    with made(world).holding():
        assert world.now == 1060.0


def test_a_dead_holder_s_lease_is_free_when_its_duration_has_been_observed(world: World) -> None:
    world.put("dead", datetime.now(UTC) + timedelta(days=400))
    assert (made(world).other(), world.now) == ("", 1030.0)


def test_a_standby_takes_over_30_s_after_the_last_observed_renewal(world: World) -> None:
    world.renewing("living", 5.0)
    # The holder dies after renewing for 100 s.
    world.at.append((1101.0, lambda: setattr(world, "at", [])))
    waits: list[float] = []

    def wait(_: HeldError) -> None:
        waits.append(world.now)
        world.pause(1.0)

    with made(world).holding(wait):
        assert world.now == 1130.0
    assert len(waits) == 130


def test_a_temporary_api_outage_loses_no_observation(world: World) -> None:
    world.put("dead", THEN)
    own = made(world)

    def wait(_: HeldError) -> None:
        world.pause(10.0)
        world.silent = True

    with pytest.raises(ApiException), own.holding(wait):
        raise AssertionError("held without an answer")
    world.silent = False
    world.pause(20.0)
    with own.holding():
        assert world.now == 1030.0


def test_the_faster_process_gets_the_lease(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put("", THEN)
    body = Lease._body

    def late(self: Lease, *given: Any) -> V1Lease:
        made_ = body(self, *given)
        world.renewing("quicker", 5.0)
        return made_

    monkeypatch.setattr(Lease, "_body", late)
    with pytest.raises(HeldError, match="quicker acts on this cluster"), made(world).holding():
        raise AssertionError("held twice")


def test_it_is_certainly_held_for_two_thirds_of_its_duration(world: World) -> None:
    own = made(world)
    with own.holding():
        world.now += 19.9
        assert own.held()
        world.now += 0.2
        assert not own.held()


class Rounds(threading.Event):
    """An event that is set at the third wait, so that a thread's loop runs twice in the test's own thread."""

    waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        return self.waits > 2


def test_a_renewal_that_the_api_does_not_answer_is_logged_and_repeated(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    own = made(world)
    own._take()
    world.silent = True
    own._renew(Rounds())
    assert [record.getMessage() for record in caplog.records] == ["can't renew Lease it: ApiException"] * 2


def test_a_renewal_within_one_clock_tick_is_still_visible(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return THEN

    monkeypatch.setattr(lease, "datetime", Stopped)
    own = made(world)
    own._take()
    first = world.kept
    own._take()
    assert first and world.kept and world.kept.spec.renew_time > first.spec.renew_time
