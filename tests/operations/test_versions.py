"""What an older Menagerie does with a newer mark on a Node, host's report on keys, and record of an operation."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import V1Node, V1NodeSpec, V1ObjectMeta
from obstore.store import MemoryStore

from clients.access import Access
from clients.etcd_client import EtcdClient
from cluster.shared import NewerDataError
from cluster.spec import Cluster
from operations import drain
from operations.drain import MARK, DrainMark, OutOfServiceError, cordon, mark_of, uncordon
from operations.keys import reports
from operations.record import TakenOverError, hold, ledger, one_operation, read_ledger, unlock
from operations.record.model import CURRENT, Record
from operations.record.store import RecordStore
from operations.status import work
from tests.operations.conftest import outputs
from tests.operations.record.conftest import ELSEWHERE, record


class Core:
    """A node. written: what was patched into it."""

    def __init__(self, text: str | None) -> None:
        self.annotations = {} if text is None else {MARK: text}
        self.written: list[dict[str, Any]] = []

    def read_node(self, name: str, **_: object) -> V1Node:
        return V1Node(metadata=V1ObjectMeta(name=name, annotations=self.annotations), spec=V1NodeSpec())

    def patch_node(self, name: str, patch: dict[str, Any], **_: object) -> None:
        self.written.append(patch)


def core(text: str | None, monkeypatch: pytest.MonkeyPatch) -> Core:
    made = Core(text)
    monkeypatch.setattr(drain.client, "CoreV1Api", lambda _: made)
    return made


def test_a_node_that_a_newer_menagerie_took_out_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    node = core('{"version": 2, "by": "reboot", "until": "noon"}', monkeypatch)
    with pytest.raises(OutOfServiceError, match=r"\(a newer Menagerie: .* has version 2, but this checkout reads"):
        cordon(None, "a", DrainMark("reboot", "a test"))
    assert not uncordon(None, "a", "reboot")
    assert node.written == []


def test_a_mark_has_a_version_and_one_with_a_missing_or_additional_field_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = core(None, monkeypatch)
    cordon(None, "a", DrainMark("reboot", "a test"))
    (written,) = node.written
    assert json.loads(written["metadata"]["annotations"][MARK])["version"] == 1
    for said in ({"by": "reboot", "why": "x"}, {"version": 1, "by": "reboot", "why": "x", "ticket": "T-1"}):
        node = core(json.dumps(said), monkeypatch)
        assert mark_of(node.read_node("a")) == DrainMark("reboot", "x")
        # The mark is removed as a whole, and nothing else is ever written into it.
        assert uncordon(None, "a", "reboot")
        assert node.written[0]["metadata"]["annotations"] == {MARK: None}


KEYS = {"reader": "api-servers", "at": 1, "digests": {}, "lagging": {}, "failures": [], "certificates": {}}


def test_a_host_s_report_on_its_keys_is_read_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    access, said = Access(outputs(), "", "", "", "", ""), {**KEYS, "disks": 2}

    def scan(_: EtcdClient, prefix: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(key=f"{prefix}api-1", value=json.dumps(said), revision=7)]

    monkeypatch.setattr(EtcdClient, "__init__", lambda *_: None)
    monkeypatch.setattr(EtcdClient, "scan", scan)
    assert {each.host for each in reports.read(access)} == {"api-1"}
    said["version"] = 2
    with pytest.raises(NewerDataError, match="the report of api-1 on its keys has version 2"):
        reports.read(access)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> RecordStore:
    """A cluster's bucket."""
    made = RecordStore(MemoryStore(), "memory", shared=True)
    for module in (hold, ledger):
        monkeypatch.setattr(module, "bucket_store", lambda _: made)
    return made


def newer(own: Record) -> bytes:
    return json.dumps({**json.loads(own.to_bytes()), "version": 2}).encode()


def test_the_record_of_a_newer_menagerie_holds_the_cluster(lab: Cluster, store: RecordStore) -> None:
    access, theirs = Access(outputs(), "", "", "", "", ""), record(holder=ELSEWHERE)
    store.put(CURRENT, newer(theirs))
    up = one_operation(lab, access, "up", repeatable=True, without_record=True)
    with pytest.raises(NewerDataError, match="the record of an operation has version 2"), up:
        raise AssertionError("held")
    with pytest.raises(NewerDataError):
        unlock(lab.name, access, theirs.id, take_over=True)
    with pytest.raises(NewerDataError):
        read_ledger(lab.name, access)
    (item,) = work.operation(lab, access)
    assert (item.ok, "has version 2" in item.detail) == (False, True)
    kept = store.read(CURRENT)
    assert kept and kept.value == newer(theirs)


def test_a_run_that_a_newer_menagerie_took_over_stops_and_writes_nothing(lab: Cluster, store: RecordStore) -> None:
    text = newer(record(holder=ELSEWHERE))
    up = one_operation(lab, Access(outputs(), "", "", "", "", ""), "up")
    with pytest.raises(TakenOverError, match="belongs to a newer Menagerie"), up as held:
        store.put(CURRENT, text)
        held.done("stack")
    kept = store.read(CURRENT)
    assert kept and kept.value == text


def test_an_older_record_and_one_with_an_additional_field_are_resumed(lab: Cluster, store: RecordStore) -> None:
    """The next write drops the field."""
    theirs = record("up", "", steps=({"name": "stack", "at": "2026-11-20T14:02:00Z"},), state="cut short")
    text = {**json.loads(theirs.to_bytes()), "weather": "fine"}
    del text["version"]
    store.put(CURRENT, json.dumps(text).encode())
    with one_operation(lab, Access(outputs(), "", "", "", "", ""), "up") as held:
        assert held.resumed
        assert held.has("stack")
        kept = store.read(CURRENT)
        assert kept
        assert json.loads(kept.value)["version"] == 1
        assert "weather" not in json.loads(kept.value)
