"""Stores for the records of a cluster's operations: its bucket ``records``, or a folder of this checkout.

An object is overwritten only if it is still the version that was read. S3, Azure and Google Cloud Storage guarantee this
(If-None-Match and If-Match, generations); in a folder, a kernel lock does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
from cluster.locks import locked

if TYPE_CHECKING:
    from obstore.store import ObjectStore

USE = "records"
"""The use of the bucket, in `ClusterOutputs.buckets`."""
CLOCK = "operations/clock"
"""Object that tells the store's time."""
_READERS = 16

Version = Mapping[str, str]
"""The store's identification of an object's version."""


class RecordStoreError(FailedError):
    """The store does not respond, or refuses; the text is the store's."""

    code = "no-record"


class ConflictError(Exception):
    """Another writer was faster: the object exists already, has changed, or is gone."""


@dataclass(frozen=True)
class StoredObject:
    """An object. modified: by the store's clock."""

    value: bytes
    version: Version
    modified: datetime


class RecordStore:
    """Objects by key. where: its name for people. shared: whether other machines see it. Methods raise RecordStoreError."""

    def __init__(self, objects: ObjectStore, where: str, *, shared: bool) -> None:
        self._objects = objects
        self.where = where
        self.shared = shared

    def read(self, key: str) -> StoredObject | None:
        """Return the object, None if it does not exist."""
        try:
            with self._answering():
                response = self._objects.get(key)
                meta = response.meta
                return StoredObject(bytes(response.bytes()), _version(dict(meta)), meta["last_modified"])
        except FileNotFoundError:
            return None

    def create(self, key: str, value: bytes) -> Version:
        """Create the object. Raises ConflictError if it exists."""
        try:
            with self._answering():
                return _version(dict(self._objects.put(key, value, mode="create")))
        except AlreadyExistsError:
            raise ConflictError(key) from None
        except FileNotFoundError as error:
            raise RecordStoreError(f"{self.where} is gone: {_first_line(error)}") from None

    def replace(self, key: str, value: bytes, version: Version) -> Version:
        """Replace the object. Raises ConflictError if it is no longer this version."""
        try:
            with self._answering():
                return self._replace(key, value, version)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            raise ConflictError(key) from None

    def _replace(self, key: str, value: bytes, version: Version) -> Version:
        # The type requires both keys; stores have one of them, or both.
        return _version(dict(self._objects.put(key, value, mode=dict(version))))  # type: ignore[arg-type]

    def put(self, key: str, value: bytes) -> None:
        """Write the object unconditionally."""
        try:
            with self._answering():
                self._objects.put(key, value)
        except FileNotFoundError as error:
            raise RecordStoreError(f"{self.where} is gone: {_first_line(error)}") from None

    def keys(self, prefix: str) -> list[str]:
        """Return the keys, sorted."""
        try:
            with self._answering():
                return sorted(meta["path"] for page in self._objects.list(prefix) for meta in page)
        except FileNotFoundError:
            return []

    def now(self) -> datetime:
        """Return the time by the store's clock, which dates the objects and may differ from this machine's."""
        self.put(CLOCK, b"")
        with self._answering():
            return self._objects.head(CLOCK)["last_modified"]

    def read_all(self, prefix: str) -> dict[str, bytes]:
        """Return the objects by key, several at a time."""
        with ThreadPoolExecutor(max_workers=_READERS) as pool:
            objects = zip(keys := self.keys(prefix), pool.map(self.read, keys), strict=True)
            return {key: stored.value for key, stored in objects if stored}

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Pass on errors about the object; translate errors about the store to RecordStoreError."""
        try:
            yield
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            raise
        except (BaseError, ValueError, OSError) as error:
            raise RecordStoreError(f"can't use {self.where}: {_first_line(error)}") from None


class FolderStore(RecordStore):
    """A store in a folder on this machine, which is created if missing."""

    def __init__(self, folder: Path, where: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(LocalStore(folder), where, shared=False)
        self._lock = folder / "lock"

    def _replace(self, key: str, value: bytes, version: Version) -> Version:
        with locked(self._lock):
            kept = self.read(key)
            if kept is None or kept.version != version:
                raise PreconditionError(key)
            return _version(dict(self._objects.put(key, value)))


def bucket_store(access: Access) -> RecordStore | None:
    """Return the cluster's bucket, None if the cluster is older than such buckets."""
    bucket = access.outputs.buckets.get(USE)
    if bucket is None:
        return None
    objects = open_bucket(bucket, access.bucket_key, access.outputs.ca_pem)
    return RecordStore(objects, f"bucket {bucket.name}", shared=True)


def local_store(cluster: str) -> RecordStore:
    """Return this checkout's store. It is not inside the cluster's state folder, so it outlives a `destroy`."""
    return FolderStore(STATE / "records" / cluster, f"this checkout's own records of {cluster}")


def has_local(cluster: str) -> bool:
    """Return whether this checkout has ever kept a record of the cluster."""
    return (STATE / "records" / cluster).is_dir()


def _version(meta: Mapping[str, object]) -> Version:
    return {name: str(meta[name]) for name in ("e_tag", "version") if meta.get(name)}


def _first_line(error: BaseException) -> str:
    return str(error).split("\n\nDebug source")[0].strip().replace("\n", " ")
