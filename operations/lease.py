"""One of a kind acts on a cluster at a time: a Lease in it, taken and renewed on a condition.

The client library's own election (kubernetes.leaderelection) knows ConfigMaps and no Leases, and ends its process by itself.
All times are the API server's, from its Date header, so no clock need be right.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from operations.access import API_TIMEOUT_S

NAMESPACE = "kube-system"
LASTS_S = 30
"""From the last renewal until somebody else may take it. A holder that could not renew for two thirds of that stops acting."""


def this_process() -> str:
    """A holder: no other process has the name."""
    return f"{socket.gethostname()}_{os.getpid()}"


class HeldError(Exception):
    """Another acts on the cluster; the text says who, and since when."""


class LostTheLockError(Exception):
    """The Lease was not renewed in time, or another took it: whoever had it acts no more."""


class Lease:
    """name: of the Lease, and to people the name of what acts. holder: who asks for it; unique to a process."""

    def __init__(self, api: client.ApiClient, name: str, holder: str, lasts_s: int = LASTS_S) -> None:
        self._leases = client.CoordinationV1Api(api)
        self._name, self._holder, self._lasts_s = name, holder, lasts_s
        self._renewed: float | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def again_s(self) -> float:
        """Between two renewals, and until whoever waits for it should ask again."""
        return self._lasts_s / 6

    def held(self) -> bool:
        """Whether it is surely ours, for a third of its time at least."""
        return self._renewed is not None and time.monotonic() - self._renewed < self._lasts_s * 2 / 3

    def check(self) -> None:
        """LostTheLockError unless it is held."""
        if not self.held():
            raise LostTheLockError(f"the Lease {self._name} was lost: it was not renewed in time, or another took it")

    def other(self) -> str:
        """Who else holds it now; "" where nobody does. Raises kubernetes' ApiException and urllib3's HTTPError."""
        return self._other(*self._read())[0]

    @contextmanager
    def holding(self, wait: Callable[[HeldError], None] | None = None) -> Iterator[None]:
        """Hold it for the length of a block. wait: told who holds it, to return when it is to be asked for again.

        Raises HeldError where another holds it and there is no `wait`, kubernetes' ApiException and urllib3's HTTPError.
        """
        while True:
            began = time.monotonic()
            try:
                self._take()
            except HeldError as error:
                if wait is None:
                    raise
                wait(error)
            else:
                break
        self._renewed = began
        over = threading.Event()
        thread = threading.Thread(target=self._renew, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            if self.held():
                self._give_up()
            self._renewed = None

    def _take(self) -> None:
        found, now = self._read()
        if found is None:
            try:
                self._leases.create_namespaced_lease(NAMESPACE, self._body(None, now), _request_timeout=API_TIMEOUT_S)
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                raise HeldError(self._just_begun) from None
            return
        other, age_s = self._other(found, now)
        if other:
            raise HeldError(
                f"{other} acts on this cluster as {self._name}, and said so {age_s:.0f} s ago; "
                f"end it first, or wait {self._lasts_s} s if it is dead"
            )
        if not self._write(found, now):
            raise HeldError(self._just_begun)

    def _other(self, found: Any, now: datetime) -> tuple[str, float]:
        """Who else holds it, and for how many seconds they have not said so; "" where nobody does."""
        spec = (found and found.spec) or client.V1LeaseSpec()
        age_s = (now - spec.renew_time).total_seconds() if spec.renew_time else float("inf")
        if spec.holder_identity == self._holder or age_s > (spec.lease_duration_seconds or self._lasts_s):
            return "", 0.0
        return spec.holder_identity or "", max(age_s, 0.0)

    @property
    def _just_begun(self) -> str:
        return f"another {self._name} has just begun on this cluster"

    def _renew(self, over: threading.Event) -> None:
        """Until it is over, or lost."""
        while not over.wait(self.again_s):
            began = time.monotonic()
            try:
                found, now = self._read()
                if found is None or found.spec.holder_identity != self._holder or not self._write(found, now):
                    self._renewed = None
                    return
            except (ApiException, urllib3.exceptions.HTTPError):
                continue  # it ends by itself where this goes on
            self._renewed = began

    def _give_up(self) -> None:
        try:
            found, now = self._read()
            if found is not None and found.spec.holder_identity == self._holder:
                self._write(found, now, holder="")
        except (ApiException, urllib3.exceptions.HTTPError):
            return  # it ends by itself

    def _read(self) -> tuple[Any, datetime]:
        try:
            found, _, headers = self._leases.read_namespaced_lease_with_http_info(
                self._name, NAMESPACE, _request_timeout=API_TIMEOUT_S
            )
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found, headers = None, error.headers
        # The client leaves a fraction of nothing out, and the API takes no MicroTime without one.
        return found, parsedate_to_datetime(headers["Date"]).astimezone(UTC).replace(microsecond=1)

    def _write(self, found: Any, now: datetime, holder: str | None = None) -> bool:
        """Whether nobody wrote in between."""
        try:
            self._leases.replace_namespaced_lease(
                self._name, NAMESPACE, self._body(found, now, holder), _request_timeout=API_TIMEOUT_S
            )
        except ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    def _body(self, found: Any, now: datetime, holder: str | None = None) -> client.V1Lease:
        spec = (found and found.spec) or client.V1LeaseSpec()
        mine = spec.holder_identity == self._holder
        return client.V1Lease(
            metadata=client.V1ObjectMeta(
                name=self._name,
                namespace=NAMESPACE,
                resource_version=found.metadata.resource_version if found else None,
            ),
            spec=client.V1LeaseSpec(
                holder_identity=self._holder if holder is None else holder,
                lease_duration_seconds=self._lasts_s,
                acquire_time=spec.acquire_time if mine else now,
                renew_time=now,
                lease_transitions=(spec.lease_transitions or 0) + (found is not None and not mine),
            ),
        )
