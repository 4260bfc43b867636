"""One operation at a time: who gets the cluster, what others see, and who can resume what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clients.access import Access
from cluster.errors import LockedError, RefusedError
from cluster.spec import Cluster
from operations.record import (
    RecordStoreError,
    TakenOverError,
    hold,
    ledger,
    one_operation,
    operation,
    read_ledger,
    store,
    take,
    unlock,
)
from operations.record.model import CURRENT, OperationState, Record, ago, now, parse
from operations.record.store import ConflictError, RecordStore
from tests.operations.conftest import outputs
from tests.operations.record.conftest import ELSEWHERE, KEY, access_to, make_bucket, record
from tests.waiting import until

ROOT = Path(__file__).parents[3]
Opened = Callable[[], RecordStore]

HOLDER = """
import sys, time
from pathlib import Path
from cluster.errors import LockedError
from operations.record.holder import Holder
from operations.record.model import Record
from operations.record.store import FolderStore, RecordStore
from operations.record.take import take
from clients.buckets import open_bucket
from cluster.outputs import BucketOutput

if sys.argv[1].startswith("http"):
    endpoint, name = sys.argv[1].rsplit("/", 1)
    bucket = BucketOutput(kind="s3", name=name, region="us-east-1", endpoint=endpoint)
    store = RecordStore(open_bucket(bucket, sys.argv[4]), "bucket", shared=True)
else:
    store = FolderStore(Path(sys.argv[1]), "a folder")
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
try:
    own = Record.model_validate_json(sys.argv[3]).model_copy(update={"holder": Holder.this()})
    held = take(store, own, print)
except LockedError:
    print("locked", flush=True)
else:
    held.done("stopped", member="etcd-main-1")
    print("holds", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def access(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Access:
    """A cluster with the store under test as its bucket."""
    for module in (hold, ledger):
        monkeypatch.setattr(module, "bucket_store", lambda _: opened())
    return Access(outputs(), "", "", "", "", "")


def current(opened: Opened) -> Record:
    kept = opened().read(CURRENT)
    assert kept is not None
    return parse(kept)


def no_clock(silent_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the store's clock."""
    own = RecordStore.now
    monkeypatch.setattr(RecordStore, "now", lambda self: own(self) + timedelta(seconds=silent_s))


def test_an_operation_holds_its_cluster_for_its_block_and_is_then_in_the_history(
    lab: Cluster, access: Access, opened: Opened
) -> None:
    with one_operation(lab, access, "up", "--limit worker-1") as held:
        assert not held.resumed
        held.done("stack", changed="3")
        assert (current(opened).state, current(opened).holder.pid) == (OperationState.RUNNING, os.getpid())
        with pytest.raises(LockedError), one_operation(lab, access, "up", "--limit worker-1"):
            raise AssertionError("held twice")
    ledger_ = read_ledger("lab", access)
    assert ledger_.current is None
    ended = ledger_.past[0]
    assert (ended.what, ended.result, ended.steps[0].facts) == ("up --limit worker-1", "done", {"changed": "3"})
    with one_operation(lab, access, "destroy"):
        pass
    assert [each.verb for each in read_ledger("lab", access).past[:2]] in (["destroy", "up"], ["up", "destroy"])


def test_a_refused_run_is_told_who_holds_the_cluster_and_which_commands_help(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)
    theirs = record(holder=ELSEWHERE, since=since)
    take.take(opened(), theirs, print)
    with pytest.raises(LockedError) as living, one_operation(lab, access, "up"):
        raise AssertionError("held twice")
    text = str(living.value)
    assert text.startswith(
        'lab is locked by mia@ops-2 (pid 4711, since 2026-11-20 14:02 UTC, "etcd restore main"), last heard of '
    )
    assert "./menagerie status lab operations" in text
    assert f"./menagerie unlock lab --operation {theirs.id} --take-over" in text
    no_clock(180, monkeypatch)
    with pytest.raises(LockedError) as dead, one_operation(lab, access, "up"):
        raise AssertionError("held twice")
    text = str(dead.value)
    assert "last heard of 3 min ago" in text
    assert "to resume it: ./menagerie etcd restore lab main\n" in text
    assert text.endswith(f"./menagerie unlock lab --operation {theirs.id}")


def test_the_same_verb_resumes_a_run_without_heartbeats(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = take.take(opened(), record(holder=ELSEWHERE), print)
    theirs.done("stopped", token="t1")
    no_clock(take.DEAD_S + 2, monkeypatch)
    lines: list[str] = []
    with one_operation(lab, access, "etcd restore", "main", report=lines.append) as held:
        assert held.resumed
        assert held.has("stopped")
        assert not held.has("started")
        held.done("started", token="t2")
        assert dict(held.facts) == {"token": "t2"}
    assert lines == [
        f"resuming the interrupted run that started {theirs.record.since:%Y-%m-%d %H:%M} UTC; completed steps: stopped"
    ]
    with one_operation(lab, access, "etcd restore", "main") as anew:
        assert not anew.resumed
        assert not anew.facts


def test_the_same_verb_with_other_arguments_does_not_resume_it(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    take.take(opened(), record(holder=ELSEWHERE), print)
    no_clock(take.DEAD_S + 2, monkeypatch)
    with pytest.raises(LockedError), one_operation(lab, access, "etcd restore", "events"):
        raise AssertionError("held twice")


def test_an_unfinished_repeatable_verb_blocks_nobody(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    take.take(opened(), record("up", "", holder=ELSEWHERE, repeatable=True), print).done("stack")
    no_clock(take.DEAD_S + 2, monkeypatch)
    with one_operation(lab, access, "destroy") as held:
        assert not held.resumed
        assert not held.has("stack")
    assert {(each.verb, each.result) for each in read_ledger("lab", access).past} >= {
        ("up", "cut short"),
        ("destroy", "done"),
    }


def test_after_an_error_with_completed_steps_the_cluster_stays_locked_for_the_same_verb(
    lab: Cluster, access: Access, opened: Opened
) -> None:
    with pytest.raises(OSError, match="no route"), one_operation(lab, access, "etcd restore", "main") as held:
        held.done("stopped")
        raise OSError("no route")
    assert (current(opened).state, current(opened).error) == (OperationState.CUT_SHORT, "no route")
    with pytest.raises(LockedError, match="completed steps: stopped"), one_operation(lab, access, "up"):
        raise AssertionError("held twice")
    with one_operation(lab, access, "etcd restore", "main") as again:
        assert again.resumed
    with one_operation(lab, access, "up"):
        pass


@pytest.mark.parametrize(("repeatable", "steps"), [(False, 0), (True, 1)])
def test_an_error_before_any_step_or_of_a_repeatable_verb_frees_the_cluster(
    lab: Cluster, access: Access, repeatable: bool, steps: int
) -> None:
    with pytest.raises(KeyboardInterrupt), one_operation(lab, access, "upgrade", repeatable=repeatable) as held:
        for number in range(steps):
            held.done(f"step {number}")
        raise KeyboardInterrupt
    ledger_ = read_ledger("lab", access)
    assert (ledger_.current, ledger_.past[0].result) == (None, "interrupted")


@pytest.fixture(params=["folder", "moto", "versitygw"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, or the URL of a bucket, for separate processes."""
    if request.param == "folder":
        return str(tmp_path / "records")
    endpoint, name = request.getfixturevalue(request.param), f"records-{uuid.uuid4().hex[:8]}"
    make_bucket(endpoint, name)
    return f"{endpoint}/{name}"


def test_if_several_processes_start_at_once_one_holds_the_cluster(tmp_path: Path, place: str) -> None:
    begin = tmp_path / "begin"
    started = [_holder(place, begin, verb) for verb in ("up", "destroy", "up", "configure")]
    try:
        begin.touch()
        lines = [process.stdout.readline().strip() for process in started if process.stdout]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    assert sorted(lines) == ["holds", "locked", "locked", "locked"]


def test_a_killed_holder_of_this_machine_is_dead_at_once(tmp_path: Path, place: str) -> None:
    begin = tmp_path / "begin"
    begin.touch()
    with _holder(place, begin, "etcd restore") as process:
        assert process.stdout
        assert process.stdout.readline() == "holds\n"
        opened = _opened(place)
        with pytest.raises(LockedError, match="Wait until it ends"):
            take.take(opened, record(), print)
        process.send_signal(signal.SIGKILL)
        process.wait()
    held = take.take(opened, record(), print)
    assert (held.resumed, dict(held.facts)) == (True, {"member": "etcd-main-1"})


def test_a_reused_process_id_is_another_process() -> None:
    assert not record().holder.model_copy(update={"started": 1}).lives
    assert record().holder.lives


def test_a_run_that_was_taken_over_notices_with_its_next_step(lab: Cluster, access: Access, opened: Opened) -> None:
    bob = record(holder=ELSEWHERE.model_copy(update={"who": "bob@ops-3"}))
    with (
        pytest.raises(TakenOverError, match=r"taken over by bob@ops-3") as raised,
        one_operation(lab, access, "etcd restore", "main") as held,
    ):
        kept = opened().read(CURRENT)
        assert kept
        opened().replace(CURRENT, bob.to_bytes(), kept.version)
        held.done("wiped")
    assert "./menagerie status lab operations" in str(raised.value)
    assert current(opened).run == bob.run


def test_the_heartbeat_ends_a_run_that_was_taken_over(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "BEAT_S", 0.5)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupted)
    try:
        with pytest.raises(TakenOverError, match="ended: unlocked by"), one_operation(lab, access, "up") as held:
            unlock("lab", access, held.record.id, take_over=True)
            time.sleep(30)
            raise AssertionError("nobody interrupted the work")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert current(opened).result.startswith("unlocked by ")


def test_a_heartbeat_is_written_during_the_work(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "BEAT_S", 0.05)
    with one_operation(lab, access, "up"):
        first = opened().read(CURRENT)
        until(lambda: opened().read(CURRENT).version != first.version, seconds=30, every_s=0.05)  # type: ignore[union-attr]


def test_a_wrong_clock_makes_nobody_dead_and_nobody_alive(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other machine's clock is a day off; only the store's clock counts."""
    wrong = now() - timedelta(days=1)
    take.take(opened(), record(holder=ELSEWHERE, since=wrong, heartbeat=wrong), print)
    with pytest.raises(LockedError, match="Wait until it ends"), one_operation(lab, access, "etcd restore", "main"):
        raise AssertionError("held twice")
    kept = opened().read(CURRENT)
    assert kept
    ahead = record(holder=ELSEWHERE, heartbeat=now() + timedelta(days=1))
    opened().replace(CURRENT, ahead.to_bytes(), kept.version)
    no_clock(take.DEAD_S + 2, monkeypatch)
    with one_operation(lab, access, "etcd restore", "main") as held:
        assert held.resumed


def test_a_lost_response_is_not_a_takeover(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = RecordStore.replace

    def loses(self: RecordStore, key: str, value: bytes, version: object) -> object:
        monkeypatch.setattr(RecordStore, "replace", own)
        own(self, key, value, version)  # type: ignore[arg-type]
        raise ConflictError(key)

    with one_operation(lab, access, "etcd restore", "main") as held:
        monkeypatch.setattr(RecordStore, "replace", loses)
        held.done("stopped")
        held.done("started")
    assert [step.name for step in current(opened).steps] == ["stopped", "started"]


def test_a_record_that_somebody_deleted_is_written_again(lab: Cluster, access: Access, opened: Opened) -> None:
    with one_operation(lab, access, "etcd restore", "main") as held:
        opened()._objects.delete(CURRENT)
        held.done("stopped")
        assert current(opened).steps[0].name == "stopped"


def test_an_invalid_record_is_an_error_that_says_what_to_do(lab: Cluster, access: Access, opened: Opened) -> None:
    opened().create(CURRENT, b"{}")
    with (
        pytest.raises(RecordStoreError, match="is not a valid record of an operation"),
        one_operation(lab, access, "up"),
    ):
        raise AssertionError("held")


def test_without_a_bucket_the_record_is_in_this_checkout_and_that_is_reported(lab: Cluster) -> None:
    access, lines = Access(outputs(), "", "", "", "", ""), list[str]()
    with one_operation(lab, access, "configure", report=lines.append) as held:
        assert not held.is_shared
        with pytest.raises(LockedError), one_operation(lab, access, "up"):
            raise AssertionError("held twice")
    assert lines == ["lab has no bucket for records yet: operators on other machines can't see this run"]
    assert [each.verb for each in read_ledger("lab", access).past] == ["configure"]


def test_a_silent_bucket_stops_a_run_unless_the_operator_allows_it_without_a_record(
    lab: Cluster,
) -> None:
    access, lines = access_to("http://127.0.0.1:9"), list[str]()
    with pytest.raises(RecordStoreError) as raised, one_operation(lab, access, "etcd restore", "main"):
        raise AssertionError("held")
    assert str(raised.value).endswith("./menagerie etcd restore lab main --without-record")
    with one_operation(lab, access, "etcd restore", "main", without_record=True, report=lines.append) as held:
        assert not held.is_shared
    assert "continuing with a record that operators on other machines can't see" in lines[0]


def test_a_run_left_without_the_bucket_is_resumed_in_the_bucket(
    lab: Cluster, access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as outage:
        outage.setattr(hold, "bucket_store", store.bucket_store)
        dead = access_to("http://127.0.0.1:9")
        with pytest.raises(OSError), one_operation(lab, dead, "etcd restore", "main", without_record=True) as held:
            held.done("stopped")
            raise OSError
    with pytest.raises(LockedError), one_operation(lab, access, "up"):
        raise AssertionError("held twice")
    with one_operation(lab, access, "etcd restore", "main") as again:
        assert again.is_shared == opened().shared
        assert again.resumed
        assert again.has("stopped")
        assert current(opened).steps[0].name == "stopped"
    with one_operation(lab, access, "up"):
        pass


def test_finished_work_counts_as_done_although_its_bucket_disappeared(
    lab: Cluster, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    with one_operation(lab, access, "upgrade", report=lines.append) as held:
        gone = store.bucket_store(access_to("http://127.0.0.1:9"))
        assert gone
        held._store = gone
    assert "could not be recorded" in lines[0]
    assert [each.result for each in read_ledger("lab", None).past] == ["done"]


def test_a_moved_record_is_closed_in_its_new_store(lab: Cluster, access: Access) -> None:
    with one_operation(lab, access, "destroy", repeatable=True) as held:
        held.move(store.local_store("lab"))
    ledger_ = read_ledger("lab", None)
    assert (ledger_.current, [each.result for each in ledger_.past]) == (None, ["done"])


def test_a_live_operation_is_unlocked_only_with_take_over(access: Access, opened: Opened) -> None:
    theirs = take.take(opened(), record(holder=ELSEWHERE), print).record
    with pytest.raises(RefusedError, match="./menagerie status lab operations"):
        unlock("lab", access, "another", take_over=True)
    with pytest.raises(LockedError):
        unlock("lab", access, theirs.id, take_over=False)
    assert unlock("lab", access, theirs.id, take_over=True).run == theirs.run
    ledger_ = read_ledger("lab", access)
    assert ledger_.current is None
    assert ledger_.past[0].result.startswith("unlocked by ")


def test_a_dead_operation_is_unlocked_without_take_over(
    access: Access, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = take.take(opened(), record(holder=ELSEWHERE), print).record
    no_clock(take.DEAD_S + 2, monkeypatch)
    assert unlock("lab", access, theirs.id, take_over=False).id == theirs.id


@pytest.mark.parametrize(
    ("seconds", "text"), [(4, "4 s ago"), (61, "1 min ago"), (179, "3 min ago"), (7300, "2 h ago")]
)
def test_ages_are_shown_in_the_largest_unit(seconds: float, text: str) -> None:
    assert ago(seconds) == text


def _opened(place: str) -> RecordStore:
    if not place.startswith("http"):
        return store.FolderStore(Path(place), "a folder")
    bucket = store.bucket_store(access_to(*place.rsplit("/", 1)))
    assert bucket
    return bucket


def _holder(place: str, begin: Path, verb: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, place, str(begin), record(verb).model_dump_json(), KEY]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
