"""The day that has not ended: counted from the journal so far, kept in objects of its own, and the same bytes again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from cluster.spec import Cluster as Spec
from controllers.metering import day as days
from controllers.metering.day import Day
from controllers.metering.journal import DAY_S
from tests.bookkeeping.surroundings import PODS, World, keeper, pod, rounds, use
from tests.metering.lives import DAY, HOUR, START


def running(world: World, on: date = DAY) -> Day:
    made = world.store().running(on)
    assert made
    return made


@pytest.fixture
def often(build: Callable[..., Spec]) -> Spec:
    """A spec that counts the running day every ten minutes."""
    tenancy = {"tenancy": {"directory": {"file": "people.yaml"}}, "metering": {"running_every": "10m"}}
    return build({**tenancy, "pools": {"workers": {"price_hour": 2.0}}})


def test_it_is_counted_every_hour_and_closes_over_the_time_that_has_passed(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    rounds(world, spec, keeper(world, spec), START + 3 * HOUR + 600, 600)
    made = running(world)
    assert (made.is_running, made.complete, made.missing) == (True, True, ())
    assert made.span == (START, START + 3 * HOUR)
    assert made.document["capacity"]["gpus"] == 3 * 8 * 3 * HOUR == made.document["counted"]["gpus"]
    assert use(made) == {("vision", "used"): 24, ("", "free"): 48}
    assert len(world.keys(f"{days.running_folder(DAY)}/")) == 3
    assert days.key_of(DAY, 1) not in world.keys(days.PREFIX)


def test_it_is_counted_as_often_as_the_spec_says(world: World, often: Spec) -> None:
    rounds(world, often, keeper(world, often), START + HOUR, 60)
    assert len(world.keys(f"{days.running_folder(DAY)}/")) == 5
    assert running(world).span == (START, START + 3000)


def test_it_is_the_same_bytes_again_also_after_the_day_went_on(world: World, often: Spec) -> None:
    book = keeper(world, often)
    rounds(world, often, book, START + HOUR, 600)
    first = running(world)
    world.cluster.write(PODS, pod("u1", "worker-1", START + 60))
    rounds(world, often, book, START + 2 * HOUR, 600)
    assert running(world).until > first.until
    assert world.store().again(first).to_bytes() == first.to_bytes()
    (made,) = rounds(world, often, book, START + DAY_S + 2 * HOUR, 600)
    assert made.complete
    assert not made.is_running


def test_a_ledger_that_began_today_counts_from_its_beginning_and_says_so(world: World, often: Spec) -> None:
    world.wait(600 + 13 * HOUR)
    rounds(world, often, keeper(world, often), START + 14 * HOUR, 60)
    made = running(world)
    assert made.complete
    assert made.span == (START + 13 * HOUR, START + 13 * HOUR + 3000)
    assert made.document["capacity"]["gpus"] == 3 * 8 * 3000


def test_a_gap_in_it_is_missing(world: World, often: Spec) -> None:
    rounds(world, often, keeper(world, often), START + HOUR, 600)
    world.wait(HOUR)
    world.cluster.write(PODS, pod("u1", "worker-1", world.cluster.now))
    world.cluster.forgets = world.cluster.version
    rounds(world, often, keeper(world, often), START + 3 * HOUR, 600)
    made = running(world)
    assert not made.complete
    assert made.missing[0] == "00:50:00 to 02:00:00: nobody watched the cluster"


def test_a_new_leader_counts_it_when_it_is_due_and_not_before(world: World, often: Spec) -> None:
    rounds(world, often, keeper(world, often), START + 1260, 60)
    before = world.keys(days.RUNNING)
    assert keeper(world, often).once(often).running is None
    assert world.keys(days.RUNNING) == before
    world.wait(600)
    assert keeper(world, often).once(often).running


def test_the_newest_one_is_that_of_a_day_without_another_object(world: World, often: Spec) -> None:
    book = keeper(world, often)
    assert world.store().newest_running() is None
    rounds(world, often, book, START + DAY_S - 300, 600)
    newest = world.store().newest_running()
    assert newest
    assert newest.name == "2026-11-27"
    rounds(world, often, book, START + DAY_S + 2 * HOUR, 600)
    newest = world.store().newest_running()
    assert newest
    assert newest.name == "2026-11-28"
