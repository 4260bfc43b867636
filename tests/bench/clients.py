"""Clients that write and read through the load balancer while something breaks, and record a history."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import Access
from tests.bench.history import Kind, Operation

ANSWER_S = 5.0
"""How long a client waits: longer than an etcd takes to elect a leader (election-timeout is 1 s)."""
EVERY_S = 0.1
WRITERS, READERS = 2, 2
SETTLE_S = 120.0
NAMESPACE = "default"


@dataclass
class Load:
    """What the clients have recorded so far."""

    history: list[Operation] = field(default_factory=list)
    keys: tuple[str, ...] = ()

    def acknowledged(self) -> int:
        """Return the number of acknowledged writes so far."""
        return sum(each.kind is Kind.WRITE and each.known for each in tuple(self.history))


@contextmanager
def load(access: Access) -> Iterator[Load]:
    """Run clients for the length of a block. Afterwards, each key is read once more when the cluster answers again.

    Each writer has its own ConfigMap and replaces it with the version that it knows, so an unanswered write can't take effect
    after a later one. Readers read from a quorum.
    Raises TimeoutError if a last read gets no answer within `SETTLE_S`.
    """
    result = Load(keys=tuple(f"history-{secrets.token_hex(4)}" for _ in range(WRITERS)))
    stop = threading.Event()
    writers = [_Writer(access, key, result, stop) for key in result.keys]
    for writer in writers:
        writer.begin()
    readers = [_Reader(access, result.keys[number % WRITERS], result, stop) for number in range(READERS)]
    threads = [threading.Thread(target=worker.run, daemon=True) for worker in (*writers, *readers)]
    for thread in threads:
        thread.start()
    try:
        yield result
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        last = _Reader(access, result.keys[0], result, stop)
        for key in result.keys:
            last.read_at_last(key)
            with suppress(ApiException, urllib3.exceptions.HTTPError):
                last.core.delete_namespaced_config_map(key, NAMESPACE, _request_timeout=ANSWER_S)


class _Client:
    def __init__(self, access: Access, key: str, record: Load, stop: threading.Event) -> None:
        self.core = client.CoreV1Api(access.api(once=True))
        self._key, self._record, self._stop = key, record, stop

    def _note(self, kind: Kind, key: str, value: int, began: float, refused: str = "") -> None:
        self._record.history.append(Operation(kind, key, value, began, time.monotonic(), refused))

    def read(self, key: str) -> client.V1ConfigMap | None:
        began = time.monotonic()
        try:
            config_map = self.core.read_namespaced_config_map(key, NAMESPACE, _request_timeout=ANSWER_S)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            self._note(Kind.READ, key, 0, began, _why(error))
            return None
        self._note(Kind.READ, key, int(config_map.data["value"]), began)
        return config_map

    def run(self) -> None:
        """Work until `stop` is set."""
        raise NotImplementedError


class _Writer(_Client):
    def begin(self) -> None:
        """Create the key. The cluster must be healthy."""
        began = time.monotonic()
        body = {"metadata": {"name": self._key}, "data": {"value": "1"}}
        self._held = self.core.create_namespaced_config_map(NAMESPACE, body, _request_timeout=ANSWER_S)
        self._note(Kind.WRITE, self._key, 1, began)

    def run(self) -> None:
        value, is_certain = 1, True
        while not self._stop.wait(EVERY_S):
            if not is_certain:
                current = self.read(self._key)
                if current is None:
                    continue
                self._held, value, is_certain = current, int(current.data["value"]), True
            value, is_certain = value + 1, self._replace(value + 1)

    def _replace(self, value: int) -> bool:
        """Write the value. Return whether the key is known to have it now."""
        began = time.monotonic()
        metadata = {"name": self._key, "resourceVersion": self._held.metadata.resource_version}
        body = {"metadata": metadata, "data": {"value": str(value)}}
        try:
            self._held = self.core.replace_namespaced_config_map(self._key, NAMESPACE, body, _request_timeout=ANSWER_S)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            self._note(Kind.WRITE, self._key, value, began, _why(error))
            return False
        self._note(Kind.WRITE, self._key, value, began)
        return True


class _Reader(_Client):
    def run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.read(self._key)

    def read_at_last(self, key: str) -> None:
        deadline = time.monotonic() + SETTLE_S
        while self.read(key) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{key} could not be read {SETTLE_S:.0f} s after the fault")
            time.sleep(1)


def _why(error: Exception) -> str:
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason or HTTPStatus(error.status).phrase}"
    return type(error).__name__
