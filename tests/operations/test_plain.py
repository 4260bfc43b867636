"""What `pulumi up` of a built cluster is refused, as `menagerie up` is. No engine runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from clients.access import Access
from cluster.errors import LockedError, MenagerieError, RefusedError
from cluster.load import load_cluster
from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from operations.plain import WITHOUT_RECORD, refuse_or_warn
from operations.record import RecordStoreError, one_operation
from operations.record.model import CURRENT, now
from operations.record.store import RecordStore, local_store
from stacks.errors import StackError
from tests.operations.conftest import outputs
from tests.operations.record.conftest import ELSEWHERE, record
from tests.operations.test_build import KEYS

ROOT = Path(__file__).parents[2]
BUILT: dict[str, object] = {
    "outputs": outputs()
    .model_copy(update={"buckets": {"records": BucketOutput(kind="s3", name="records")}})
    .model_dump_json(),
    **dict.fromkeys(KEYS, ""),
}
ACCESS = Access.from_stack("horus", BUILT)


@pytest.fixture
def horus() -> Cluster:
    return load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")


@pytest.fixture(autouse=True)
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, horus: Cluster) -> MemoryStore:
    """The cluster's bucket; its API servers run the spec's version."""
    bucket, version = MemoryStore(), horus.spec.kubernetes.version
    monkeypatch.setattr("operations.record.store.STATE", tmp_path)
    monkeypatch.setattr("operations.record.store.open_bucket", lambda *_: bucket)
    monkeypatch.setattr("operations.upgrade.versions.servers", lambda _: frozenset({version}))
    return bucket


def refusal(horus: Cluster, outputs_: dict[str, object] = BUILT, **environment: str) -> MenagerieError:
    with pytest.raises(MenagerieError) as raised:
        refuse_or_warn(horus, lambda: outputs_, environment)
    return raised.value


def test_it_is_refused_while_an_operation_holds_the_cluster_with_the_words_of_menagerie_up(horus: Cluster) -> None:
    with one_operation(horus, ACCESS, "upgrade"):
        error = refusal(horus)
        assert isinstance(error, LockedError)
        with pytest.raises(LockedError) as ours, one_operation(horus, ACCESS, "up", repeatable=True):
            pass
        before, after = (str(each).split("last heard of")[0] for each in (error, ours.value))
        assert before == after
    refuse_or_warn(horus, lambda: BUILT, {})


def test_an_interrupted_operation_that_must_be_resumed_holds_it_too(horus: Cluster) -> None:
    with pytest.raises(OSError), one_operation(horus, ACCESS, "etcd restore", "main") as held:
        held.done("stopped")
        raise OSError
    assert "to resume it: ./menagerie etcd restore horus main" in str(refusal(horus))


def test_a_dead_run_that_any_verb_may_repeat_does_not(
    bucket: MemoryStore, monkeypatch: pytest.MonkeyPatch, horus: Cluster
) -> None:
    bucket.put(CURRENT, record("up", "", holder=ELSEWHERE, repeatable=True).to_bytes())
    assert "mia@ops-2" in str(refusal(horus))
    monkeypatch.setattr(RecordStore, "now", lambda _: now() + timedelta(hours=1))
    refuse_or_warn(horus, lambda: BUILT, {})


def test_another_release_is_left_to_upgrade(monkeypatch: pytest.MonkeyPatch, horus: Cluster) -> None:
    monkeypatch.setattr("operations.upgrade.versions.servers", lambda _: frozenset({"1.30.0"}))
    error = refusal(horus)
    assert isinstance(error, RefusedError)
    assert "run: ./menagerie upgrade horus" in str(error)


def test_a_cluster_that_is_not_built_is_free_unless_this_checkout_works_on_it(horus: Cluster) -> None:
    refuse_or_warn(horus, dict, {})
    with one_operation(horus, None, "up"):
        assert isinstance(refusal(horus, {}), LockedError)


@pytest.mark.parametrize("text", [b"half a rec", b"{}"])
def test_a_record_that_can_not_be_read_is_an_error_and_never_means_free(
    bucket: MemoryStore, horus: Cluster, text: bytes
) -> None:
    bucket.put(CURRENT, text)
    assert isinstance(refusal(horus), RecordStoreError)


def test_a_bucket_that_does_not_answer_is_an_error_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, horus: Cluster
) -> None:
    def dead(*_: object) -> None:
        raise RecordStoreError("can't use bucket records: no route")

    monkeypatch.setattr(RecordStore, "read", dead)
    monkeypatch.setattr(RecordStore, "put", dead)
    error = refusal(horus)
    assert isinstance(error, RecordStoreError)
    assert f"if none is: {WITHOUT_RECORD}=1 pulumi up -s horus" in str(error)
    refuse_or_warn(horus, lambda: BUILT, {WITHOUT_RECORD: "1"})


def test_without_a_record_a_known_operation_still_holds_it(horus: Cluster) -> None:
    with one_operation(horus, ACCESS, "upgrade"):
        assert isinstance(refusal(horus, **{WITHOUT_RECORD: "1"}), LockedError)


def test_a_bucket_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch, horus: Cluster) -> None:
    """A read can't tell it from a bucket without a record."""

    class Gone(MemoryStore):
        def put(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise FileNotFoundError("NoSuchBucket")

    monkeypatch.setattr("operations.record.store.open_bucket", lambda *_: Gone())
    assert "bucket records is gone: NoSuchBucket" in str(refusal(horus))


def test_a_preview_only_warns_and_writes_nothing(
    bucket: MemoryStore, monkeypatch: pytest.MonkeyPatch, horus: Cluster
) -> None:
    said: list[str] = []
    refuse_or_warn(horus, lambda: BUILT, {}, said.append)
    assert not said
    assert not list(bucket.list())
    monkeypatch.setattr("operations.upgrade.versions.servers", lambda _: frozenset({"1.30.0"}))
    refuse_or_warn(horus, lambda: BUILT, {}, said.append)
    assert said[0].startswith("pulumi up would be refused now: horus runs Kubernetes 1.30.0")


def test_outputs_that_can_not_be_read_refuse_a_run_and_warn_in_a_preview(horus: Cluster) -> None:
    def unread() -> dict[str, object]:
        raise StackError("the outputs of horus can't be read")

    said: list[str] = []
    refuse_or_warn(horus, unread, {}, said.append)
    assert said == ["pulumi up would be refused now: the outputs of horus can't be read"]
    with pytest.raises(StackError):
        refuse_or_warn(horus, unread, {})


def test_the_checkouts_own_record_counts_beside_the_buckets(horus: Cluster) -> None:
    local_store("horus").put(CURRENT, record("etcd restore", holder=None).to_bytes())
    assert isinstance(refusal(horus), LockedError)
