"""Guarantees of every kind of store."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from operations.record.model import CURRENT
from operations.record.store import ConflictError, RecordStore, RecordStoreError, bucket_store
from tests.operations.record.conftest import access_to

Opened = Callable[[], RecordStore]


def test_an_object_is_created_once_and_replaced_only_if_unchanged(opened: Opened) -> None:
    mia, bob = opened(), opened()
    assert mia.read(CURRENT) is None
    first = mia.create(CURRENT, b"mia")
    with pytest.raises(ConflictError):
        bob.create(CURRENT, b"bob")
    kept = bob.read(CURRENT)
    assert kept is not None
    assert (kept.value, kept.version) == (b"mia", first)
    second = bob.replace(CURRENT, b"bob", kept.version)
    with pytest.raises(ConflictError):
        mia.replace(CURRENT, b"mia again", first)
    kept = mia.read(CURRENT)
    assert kept is not None
    assert (kept.value, kept.version) == (b"bob", second)


def test_only_one_of_many_concurrent_replacements_succeeds(opened: Opened) -> None:
    version = opened().create(CURRENT, b"nobody")
    barrier, won = threading.Barrier(8), []

    def try_it(number: int) -> None:
        store = opened()
        barrier.wait()
        try:
            store.replace(CURRENT, b"%d" % number, version)
        except ConflictError:
            return
        won.append(number)

    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = opened().read(CURRENT)
    assert kept is not None
    assert [b"%d" % number for number in won] == [kept.value]


def test_a_deleted_object_is_not_replaced(opened: Opened) -> None:
    version = opened().create(CURRENT, b"mia")
    opened()._objects.delete(CURRENT)
    with pytest.raises(ConflictError):
        opened().replace(CURRENT, b"mia again", version)


def test_the_time_is_that_of_the_store(opened: Opened) -> None:
    store = opened()
    store.create(CURRENT, b"mia")
    kept = store.read(CURRENT)
    assert kept is not None
    assert 0 <= (store.now() - kept.modified).total_seconds() < 60


def test_a_silent_bucket_is_an_error_in_one_line() -> None:
    store = bucket_store(access_to("http://127.0.0.1:9"))
    assert store is not None
    for ask in (lambda: store.read(CURRENT), lambda: store.create(CURRENT, b""), lambda: store.now()):
        with pytest.raises(RecordStoreError, match=r"^can't use bucket records: [^\n]*$"):
            ask()


def test_a_missing_bucket_accepts_nothing(moto: str) -> None:
    store = bucket_store(access_to(moto, "gone"))
    assert store is not None
    with pytest.raises(RecordStoreError, match="bucket gone"):
        store.create(CURRENT, b"")
    with pytest.raises(RecordStoreError, match="bucket gone"):
        store.put("operations/history/x", b"")
