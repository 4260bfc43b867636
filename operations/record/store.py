"""Where the records of a cluster's operations are kept: its bucket ``records``, or a folder of this checkout.

An object is written only as long as it is the one that was read. S3, Azure and Google Cloud Storage promise that
themselves (If-None-Match and If-Match, generations); in a folder a lock of the kernel does.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import LocalStore

from clients.access import STATE, Access
from clients.buckets import open_bucket
from cluster.errors import FailedError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

USE = "records"
"""The use of the bucket, in `ClusterOutputs.buckets`."""
_CLOCK = "operations/clock"

Version = Mapping[str, str]
"""What the store calls an object as it is now."""


class RecordStoreError(FailedError):
    """The store does not answer, or refuses; the text is the store's own."""

    code = "no-record"


class ConflictError(Exception):
    """Somebody else was quicker: the object is there already, is another one by now, or is gone."""


@dataclass(frozen=True)
class Kept:
    """An object. modified: by the store's clock."""

    value: bytes
    version: Version
    modified: datetime


class RecordStore:
    """Objects by key. where: for people. shared: whether other machines see it. Methods raise RecordStoreError."""

    def __init__(self, objects: ObjectStore, where: str, *, shared: bool) -> None:
        self._objects = objects
        self.where = where
        self.shared = shared

    def read(self, key: str) -> Kept | None:
        """The object, None where there is none."""
        try:
            with self._answering():
                found = self._objects.get(key)
                meta = found.meta
                return Kept(bytes(found.bytes()), _version(dict(meta)), meta["last_modified"])
        except FileNotFoundError:
            return None

    def create(self, key: str, value: bytes) -> Version:
        """Raises ConflictError where there is one already."""
        try:
            with self._answering():
                return _version(dict(self._objects.put(key, value, mode="create")))
        except AlreadyExistsError:
            raise ConflictError(key) from None
        except FileNotFoundError as error:
            raise RecordStoreError(f"{self.where} is gone: {_first_line(error)}") from None

    def replace(self, key: str, value: bytes, version: Version) -> Version:
        """Raises ConflictError where the object is no longer this version."""
        try:
            with self._answering():
                return self._replace(key, value, version)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            raise ConflictError(key) from None

    def _replace(self, key: str, value: bytes, version: Version) -> Version:
        # Its type asks for both keys; a store has one of them, or both.
        return _version(dict(self._objects.put(key, value, mode=dict(version))))  # type: ignore[arg-type]

    def put(self, key: str, value: bytes) -> None:
        """Write whatever is there."""
        try:
            with self._answering():
                self._objects.put(key, value)
        except FileNotFoundError as error:
            raise RecordStoreError(f"{self.where} is gone: {_first_line(error)}") from None

    def keys(self, prefix: str) -> list[str]:
        """Sorted."""
        try:
            with self._answering():
                return sorted(meta["path"] for page in self._objects.list(prefix) for meta in page)
        except FileNotFoundError:
            return []

    def now(self) -> datetime:
        """The time by the clock that dates the objects, which need not be this machine's."""
        self.put(_CLOCK, b"")
        with self._answering():
            return self._objects.head(_CLOCK)["last_modified"]

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """What says something about the object goes on; what says something about the store is ours."""
        try:
            yield
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            raise
        except (BaseError, ValueError, OSError) as error:
            raise RecordStoreError(f"{self.where} does not answer as it should: {_first_line(error)}") from None


class FolderStore(RecordStore):
    """The same in a folder of this machine, which is made."""

    def __init__(self, folder: Path, where: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(LocalStore(folder), where, shared=False)
        self._lock = folder / "lock"

    def _replace(self, key: str, value: bytes, version: Version) -> Version:
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            kept = self.read(key)
            if kept is None or kept.version != version:
                raise PreconditionError(key)
            return _version(dict(self._objects.put(key, value)))


def bucket_store(access: Access) -> RecordStore | None:
    """The cluster's bucket, None where it has none: it was built before there were any."""
    bucket = access.outputs.buckets.get(USE)
    if bucket is None:
        return None
    objects = open_bucket(bucket, access.bucket_key, access.outputs.ca_pem)
    return RecordStore(objects, f"bucket {bucket.name}", shared=True)


def local_store(cluster: str) -> RecordStore:
    """Beside the cluster's state and not in it: it outlives a `destroy`."""
    return FolderStore(STATE / "records" / cluster, f"this checkout's own records of {cluster}")


def has_local(cluster: str) -> bool:
    """Whether this checkout has ever kept a record of the cluster."""
    return (STATE / "records" / cluster).is_dir()


def _version(meta: Mapping[str, object]) -> Version:
    return {name: str(meta[name]) for name in ("e_tag", "version") if meta.get(name)}


def _first_line(error: BaseException) -> str:
    return str(error).split("\n\nDebug source")[0].strip().replace("\n", " ")
