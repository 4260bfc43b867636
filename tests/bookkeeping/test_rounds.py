"""Rounds of the bookkeeper against an API and a bucket in memory: nothing is lost that the API still tells."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from clients.lease import LostTheLockError
from clients.watching import Watching
from cluster.errors import FailedError
from cluster.spec import Cluster as Spec
from controllers.bookkeeping import run
from controllers.bookkeeping.run import Bookkeeper
from controllers.bookkeeping.store import LedgerStore, OtherWriterError
from controllers.metering import day as days
from controllers.metering import journal
from controllers.metering.facts import HostFact, Use
from controllers.metering.history import read
from controllers.metering.journal import DAY_S
from controllers.metering.known import Book
from controllers.metering.ledger import FIELDS, Key
from operations.record.store import RecordStoreError
from tests.bookkeeping.surroundings import GPU, NODES, PODS, World, keeper, node, pod, rounds, stamp, use
from tests.metering.lives import DAY, HOUR, START


def test_a_quiet_day_closes_and_is_the_same_bytes_again(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    (made,) = rounds(world, spec, keeper(world, spec), START + DAY_S + HOUR + 3600)
    assert (made.name, made.complete, made.missing) == ("2026-11-27", True, ())
    assert use(made) == {("vision", "used"): 192, ("", "free"): 384}
    assert made.document["capacity"]["gpus"] == 3 * 8 * DAY_S == made.document["counted"]["gpus"]
    assert sum(amounts["cost_micro"] for _, amounts in made.rows()) == 3 * 24 * 2_000_000
    stored = world.bucket.read(days.key_of(DAY, 1))
    again = world.store().rebuild("lab", DAY, made.until)
    assert stored
    assert stored.value == made.to_bytes() == again.to_bytes()
    parquet = world.bucket.read(days.key_of(DAY, 1, "parquet"))
    assert parquet
    assert parquet.value[:4] == parquet.value[-4:] == b"PAR1"


def test_a_pod_that_lives_between_two_rounds_is_counted(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    book.once(spec)
    world.wait(HOUR)
    moment = world.cluster.now
    world.cluster.write(PODS, pod("u1", "worker-1", moment - 1800))
    world.cluster.write(PODS, pod("u1", "worker-1", moment - 1800, ended=moment - 900), gone=True)
    (made,) = rounds(world, spec, book, START + DAY_S + 2 * HOUR)
    assert use(made)["vision", "used"] == 2.0
    assert not [each for each in world.cluster.requests if each == f"GET {PODS}"][1:]


def test_a_new_leader_goes_on_where_the_last_one_was(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    rounds(world, spec, keeper(world, spec), START + 6 * HOUR)
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700, ended=world.cluster.now - 60), gone=True)
    (made,) = rounds(world, spec, keeper(world, spec), START + DAY_S + 2 * HOUR)
    assert made.complete
    assert sum(use(made).values()) == 3 * 8 * 24
    assert world.cluster.requests.count(f"GET {PODS}") == 1


def test_a_leader_that_comes_too_late_lists_everything_and_says_what_nobody_watched(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    rounds(world, spec, keeper(world, spec), START + 6 * HOUR)
    world.wait(2 * HOUR)
    world.cluster.write(PODS, pod("u2", "worker-2", world.cluster.now - HOUR))
    world.cluster.forgets = world.cluster.version
    (made,) = rounds(world, spec, keeper(world, spec), START + DAY_S + 2 * HOUR)
    assert not made.complete
    assert made.missing[0] == "05:50:00 to 08:20:00: nobody watched the cluster"
    # The pods prove their own time also in the gap.
    assert use(made)["vision", "used"] == pytest.approx(24 * 8 + (24 - 7 - 1 / 3) * 8)


def test_an_api_server_that_forgets_between_two_rounds_makes_a_gap_of_one_round(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 6 * HOUR, 60)
    world.cluster.write(PODS, pod("u1", "worker-1", world.cluster.now))
    world.cluster.forgets = world.cluster.version
    (made,) = rounds(world, spec, book, START + DAY_S + 2 * HOUR)
    assert made.complete
    assert made.document["not_counted"]["gpus"] == 3 * 8 * 60


def test_a_list_that_fails_half_way_is_repeated_as_a_whole(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    request, failed = world.cluster.request, []

    def failing(method: str, url: str, **how: Any) -> Any:
        if PODS in url and not failed:
            failed.append(url)
            world.cluster.silent = True
        try:
            return request(method, url, **how)
        finally:
            world.cluster.silent = False

    world.cluster.request = failing  # type: ignore[method-assign]
    with pytest.raises(FailedError, match="does not answer"):
        book.once(spec)
    assert world.keys() == []
    book.once(spec)
    assert [journal.is_whole(key) for key in world.keys(journal.PREFIX)] == [True]
    assert world.cluster.requests.count(f"GET {NODES}") == 2


def test_a_dead_node_is_broken_since_its_lease_and_its_pods_end_there(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    book = keeper(world, spec)
    rounds(world, spec, book, START + 12 * HOUR, 60)
    moment = START + 12 * HOUR
    lease = {
        "metadata": {"name": "worker-1", "namespace": "kube-node-lease"},
        "spec": {"renewTime": stamp(moment - 40)},
    }
    world.cluster.write("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)
    world.cluster.write(NODES, node("worker-1", "Unknown", moment))
    (made,) = rounds(world, spec, book, START + DAY_S + 2 * HOUR)
    assert use(made)["vision", "used"] == pytest.approx(8 * (12 - 40 / HOUR))
    assert use(made)["", "broken"] == pytest.approx(8 * (12 + 40 / HOUR))
    assert made.complete


def test_a_machine_of_a_site_stays_a_host_when_its_node_is_deleted(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 12 * HOUR, 600)
    world.cluster.write(NODES, node("worker-1"), gone=True)
    (made,) = rounds(world, spec, book, START + DAY_S + 2 * HOUR, 600)
    assert made.document["capacity"]["gpus"] == 3 * 8 * DAY_S
    assert use(made)["", "broken"] == 96


def test_segments_wait_for_a_bucket_that_does_not_answer_and_the_day_closes_later(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 12 * HOUR)
    world.bucket.silent = True
    for _ in range(30):
        with pytest.raises(RecordStoreError):
            book.once(spec)
        world.wait(1800)
    world.bucket.silent = False
    made = rounds(world, spec, book, int(world.cluster.now) + 3600)
    assert [(day.name, day.complete) for day in made] == [("2026-11-27", True)]


def test_an_end_that_is_reported_a_day_late_becomes_a_second_revision(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    book = keeper(world, spec)
    rounds(world, spec, book, START + DAY_S + 2 * HOUR)
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700, ended=START + 6 * HOUR))
    made = rounds(world, spec, book, START + 2 * DAY_S + 2 * HOUR)
    revised = [day for day in made if day.name == "2026-11-27"]
    assert [day.document["revision"] for day in revised] == [2]
    assert use(revised[0])["vision", "used"] == 48
    assert world.store().days([DAY])[DAY].to_bytes() == revised[0].to_bytes()
    first = world.store().day("2026-11-27", 1)
    assert world.store().rebuild("lab", DAY, first.until).to_bytes() == first.to_bytes()


def test_a_process_that_starts_again_writes_no_day_twice(world: World, spec: Spec) -> None:
    rounds(world, spec, keeper(world, spec), START + DAY_S + 2 * HOUR)
    before = world.keys(days.PREFIX)
    assert rounds(world, spec, keeper(world, spec), START + DAY_S + 6 * HOUR) == []
    assert world.keys(days.PREFIX) == before


def test_two_writers_for_a_while_lose_nothing_and_count_nothing_twice(world: World, spec: Spec) -> None:
    one, other = keeper(world, spec), keeper(world, spec)
    one.once(spec)
    for each in (other, one, other, one, one):
        world.wait(40)
        world.cluster.write(PODS, pod(f"u{world.cluster.now}", "worker-1", world.cluster.now, 1))
        each.once(spec)
    moment = START + HOUR
    for uid in list(world.cluster.things[PODS]):
        world.cluster.write(PODS, pod(uid, "worker-1", START - 600, 1, ended=moment))
    world.cluster.now, world.steady = moment, world.steady + moment - world.cluster.now
    (made,) = rounds(world, spec, one, START + DAY_S + 2 * HOUR)
    assert made.complete
    assert use(made)["vision", "used"] == 5


def test_a_second_writer_of_the_same_segment_begins_again(world: World, spec: Spec) -> None:
    one, other = keeper(world, spec), keeper(world, spec)
    one.once(spec)
    world.cluster.write(PODS, pod("u1", "worker-1", world.cluster.now))
    other._book = Book({})
    other._watching = {kind: Watching(world.cluster.api(), kind) for kind in run.KINDS}
    with pytest.raises(OtherWriterError, match="has another ledger/journal/2026-11-26"):
        other.once(spec)
    world.wait(60)
    assert other.once(spec).segments == 1


def test_nothing_is_written_without_the_lease(world: World, spec: Spec) -> None:
    assert spec.spec.tenancy

    def lost() -> None:
        raise LostTheLockError("menagerie-metering")

    store = LedgerStore(world.bucket, lost)
    with pytest.raises(LostTheLockError):
        Bookkeeper(world.cluster, store, spec.spec.tenancy, world.clock()).once(spec)
    assert world.keys() == []


def test_no_clock_that_jumps_moves_the_ledger(world: World, spec: Spec) -> None:
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    book = keeper(world, spec)
    rounds(world, spec, book, START + 6 * HOUR, 600)
    world.wall_off = -5 * DAY_S
    rounds(world, spec, book, START + 9 * HOUR, 600)
    world.wall_off = 5 * DAY_S
    rounds(world, spec, book, START + 12 * HOUR, 600)
    world.wall_off = 0
    real, world.cluster.now = world.cluster.now, world.cluster.now - 3 * DAY_S
    world.wall_off = real - world.cluster.now
    book.once(spec)
    world.cluster.now, world.wall_off = real, 0
    (made,) = rounds(world, spec, book, START + DAY_S + 2 * HOUR, 600)
    assert made.complete
    assert use(made) == {("vision", "used"): 192, ("", "free"): 384}
    ends = [journal.end_of(key) for key in world.keys(journal.PREFIX)]
    assert ends == sorted(ends)


def test_objects_that_cannot_be_read_do_not_keep_others_from_being_counted(
    world: World, spec: Spec, caplog: pytest.LogCaptureFixture
) -> None:
    spoiled = pod("u0", "worker-1", START - 700)
    spoiled["spec"]["containers"] = [{"resources": {"requests": {GPU: "many"}}}]
    liar = node("worker-2")
    liar["status"]["capacity"] = liar["status"]["allocatable"] = {GPU: "9" * 30, "cpu": "4", "memory": "8Gi"}
    world.cluster.write(PODS, spoiled)
    world.cluster.write(NODES, liar)
    world.cluster.write(PODS, pod("u1", "worker-1", START - 700))
    (made,) = rounds(world, spec, keeper(world, spec), START + DAY_S + 2 * HOUR)
    assert use(made)["vision", "used"] == 192
    assert "pod u0 is not counted, because it can't be read" in caplog.text


def test_a_writer_that_knew_nothing_of_the_journal_does_not_rewrite_it(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 4 * HOUR)
    world.cluster.write(NODES, node("worker-1", unschedulable=True))
    rounds(world, spec, book, START + 8 * HOUR)
    world.cluster.write(NODES, node("worker-1"))
    stranger = keeper(world, spec)
    stranger._book = Book({})
    stranger._watching = {kind: Watching(world.cluster.api(), kind) for kind in run.KINDS}
    (made,) = rounds(world, spec, stranger, START + DAY_S + 2 * HOUR)
    assert use(made)["", "drained"] == pytest.approx(8 * 4, abs=8)


def test_clocks_that_differ_at_the_start_are_refused(world: World, spec: Spec) -> None:
    world.wall_off = 3600
    book = keeper(world, spec)
    with pytest.raises(FailedError, match="differ by 3600 s, so no time can be trusted"):
        book.once(spec)
    world.wall_off = 0
    assert book.once(spec).segments == 1


def test_a_round_without_changes_writes_a_small_segment_and_everything_every_six_hours(
    world: World, spec: Spec
) -> None:
    book = keeper(world, spec)
    rounds(world, spec, book, START + 12 * HOUR, 600)
    keys = world.keys(journal.PREFIX)
    whole = [journal.end_of(key) - START for key in keys if journal.is_whole(key)]
    assert whole == [-600, 0, 6 * HOUR]
    small = [world.bucket.read(key) for key in keys if not journal.is_whole(key)]
    assert all(each and len(each.value) < 250 for each in small)


def test_a_machine_that_the_spec_gets_or_loses_is_a_host_from_then_on(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    book.once(spec)
    world.wait(60)
    hosts = spec.hosts["workers"]
    more = spec.model_copy(update={"hosts": {"workers": (*hosts, hosts[0].model_copy(update={"name": "worker-9"}))}})
    book.once(more)
    _, segments = zip(*world.store().segments(START - 700, START + HOUR), strict=True)
    known = {id: fact for (_, id), (_, fact) in read(segments).at_end().items()}
    assert isinstance(known["worker-9"], HostFact)
    assert known["worker-9"].idle is Use.BOOTING
    world.wait(60)
    book.once(spec)
    _, segments = zip(*world.store().segments(START - 700, START + HOUR), strict=True)
    assert "worker-9" not in {id for _, id in read(segments).at_end()}


def test_days_that_ended_while_nobody_ran_are_counted_one_a_round(world: World, spec: Spec) -> None:
    rounds(world, spec, keeper(world, spec), START + HOUR)
    world.wait(3 * DAY_S)
    world.cluster.forgets = world.cluster.version + 1
    book = keeper(world, spec)
    made = [book.once(spec).days for _ in range(8) if not world.wait(60)]
    names = [day.name for each in made for day in each]
    assert names == [(DAY + timedelta(days=number)).isoformat() for number in (-1, 0, 1, 2)][: len(names)]
    assert all(len(each) <= 1 for each in made)
    assert not any(day.complete for each in made for day in each)


def test_the_amounts_of_a_day_are_those_of_its_columns() -> None:
    assert set(FIELDS) - {"cost", "energy", "estimated", "energy_cost"} <= set(days.COLUMNS)
    assert len(days.COLUMNS) == len(Key._fields) + len(FIELDS)
    assert date.fromisoformat("2026-11-27") == DAY
    assert set(run.KINDS) == {"Namespace", "Node", "Pod", "PersistentVolume"}
