"""Leader election: a Lease in the cluster lets one process of a kind act at a time. Writes are conditional.

The client library's own election (kubernetes.leaderelection) is not used: docs/decisions/0105-written-by-hand.md says why.
As in client-go's leaderelection, liveness is observed, not read from timestamps: a Lease counts as expired when this
process has seen it unchanged for the Lease's duration, by its own monotonic clock. Two clocks are never compared. A
process that has just started has observed nothing: it watches for at most that duration before it takes over from a
dead holder, and for one renewal to see that a holder is alive. A holder that releases the Lease makes nobody wait.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from cluster.errors import LockedError

NAMESPACE = "kube-system"
LASTS_S = 30
"""From the last renewal until another process may take it. A holder that can't renew for two thirds of that stops acting."""
_LOOK_S = 1.0
"""Between two reads of a Lease while it is unknown whether its holder is alive."""
log = logging.getLogger(__name__)


def this_process() -> str:
    """Return this process as a holder; the name is unique to it."""
    return f"{socket.gethostname()}_{os.getpid()}"


class HeldError(LockedError):
    """Another process acts on the cluster or did recently. The text says which, and how long to wait if it is dead."""


class LostTheLockError(LockedError):
    """The Lease was not renewed in time, or another process took it: its former holder stops acting."""

    code = "taken-over"


class Lease:
    """name: of the Lease; messages also use it for the program that acts. holder: this process's unique name.

    clock: monotonic seconds. pause: sleeps for seconds, or raises to end the wait.
    """

    def __init__(
        self,
        api: client.ApiClient,
        name: str,
        holder: str,
        lasts_s: int = LASTS_S,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._leases = client.CoordinationV1Api(api)
        self._name, self._holder, self._lasts_s = name, holder, lasts_s
        self._clock, self._pause = clock, pause
        self._renewed: float | None = None
        self._last_content: tuple[object, ...] = ()
        """Content of the Lease when last read. `_since`: when this content was first read."""
        self._since = 0.0

    @property
    def name(self) -> str:
        return self._name

    @property
    def again_s(self) -> float:
        """Seconds between two renewals, and between two attempts of a process that waits."""
        return self._lasts_s / 6

    def held(self) -> bool:
        """Return whether this process certainly holds it, for at least another third of its duration."""
        return self._renewed is not None and self._clock() - self._renewed < self._lasts_s * 2 / 3

    def check(self) -> None:
        """Raise LostTheLockError unless it is held."""
        if not self.held():
            raise LostTheLockError(
                f"the Lease {self._name} was lost: it was not renewed in time, or another process took it"
            )

    def other(self) -> str:
        """Return which other live process holds it, "" if none. Watches for one renewal or until the Lease expires.

        Raises kubernetes' ApiException and urllib3's HTTPError.
        """
        at_start: tuple[object, ...] = ()
        while True:
            other, _ = self._other(self._read())
            at_start = at_start or self._last_content
            if not other or self._last_content != at_start:
                return other
            self._pause(min(_LOOK_S, self.again_s))

    @contextmanager
    def holding(
        self, wait: Callable[[HeldError], None] | None = None, report: Callable[[str], None] = lambda _: None
    ) -> Iterator[None]:
        """Hold it for the length of a block. wait: gets the holder's HeldError and returns when to try again.

        Without `wait`, raises HeldError as soon as the holder is seen to be alive; if it is dead, takes the Lease when it
        expires. report: called once with the holder that this waits for and the longest wait. Raises kubernetes'
        ApiException and urllib3's HTTPError.
        """
        wait = wait or self._until_it_is_known(report)
        while True:
            started = self._clock()
            try:
                self._take()
            except HeldError as error:
                wait(error)
            else:
                break
        self._renewed = started
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

    def _until_it_is_known(self, report: Callable[[str], None]) -> Callable[[HeldError], None]:
        """Return a `wait` that raises the error when the Lease has changed since the first call."""
        at_start: tuple[object, ...] = ()

        def wait(error: HeldError) -> None:
            nonlocal at_start
            if not at_start:
                at_start = self._last_content
                report(f"{error}; checking whether it is alive")
            elif self._last_content != at_start:
                raise error
            self._pause(min(_LOOK_S, self.again_s))

        return wait

    def _take(self) -> None:
        lease = self._read()
        if lease is None:
            try:
                self._leases.create_namespaced_lease(NAMESPACE, self._body(None), _request_timeout=API_TIMEOUT_S)
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                raise HeldError(self._just_started) from None
            return
        other, left_s = self._other(lease)
        if other:
            raise HeldError(
                f"{other} acts on this cluster as {self._name}; stop it first, or wait at most {left_s:.0f} s if it is dead"
            )
        if not self._write(lease):
            raise HeldError(self._just_started)

    def _other(self, lease: Any) -> tuple[str, float]:
        """Return the other holder as last read, "" if none, and in how many seconds its Lease expires if it is dead."""
        spec = (lease and lease.spec) or client.V1LeaseSpec()
        content = (spec.holder_identity, spec.acquire_time, spec.renew_time, spec.lease_transitions)
        if content != self._last_content:
            self._last_content, self._since = content, self._clock()
        left_s = (spec.lease_duration_seconds or self._lasts_s) - (self._clock() - self._since)
        if spec.holder_identity == self._holder or left_s <= 0:
            return "", 0.0
        return spec.holder_identity or "", left_s

    @property
    def _just_started(self) -> str:
        return f"another {self._name} has just started on this cluster"

    def _renew(self, over: threading.Event) -> None:
        """Renew until `over` is set or the Lease is lost."""
        while not over.wait(self.again_s):
            started = self._clock()
            try:
                lease = self._read()
                if lease is None or lease.spec.holder_identity != self._holder or not self._write(lease):
                    self._renewed = None
                    return
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                # If this persists, the Lease expires.
                log.warning("can't renew Lease %s: %s", self._name, type(error).__name__)
                continue
            self._renewed = started

    def _give_up(self) -> None:
        try:
            lease = self._read()
            if lease is not None and lease.spec.holder_identity == self._holder:
                self._write(lease, holder="")
        except (ApiException, urllib3.exceptions.HTTPError):
            return  # the Lease expires

    def _read(self) -> Any:
        """Return the Lease, None if it does not exist."""
        try:
            return self._leases.read_namespaced_lease(self._name, NAMESPACE, _request_timeout=API_TIMEOUT_S)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _write(self, lease: Any, holder: str | None = None) -> bool:
        """Write it. Return whether nobody else wrote since it was read."""
        try:
            self._leases.replace_namespaced_lease(
                self._name, NAMESPACE, self._body(lease, holder), _request_timeout=API_TIMEOUT_S
            )
        except ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    def _body(self, lease: Any, holder: str | None = None) -> client.V1Lease:
        spec = (lease and lease.spec) or client.V1LeaseSpec()
        mine = spec.holder_identity == self._holder
        now = _later_than(spec.renew_time)
        return client.V1Lease(
            metadata=client.V1ObjectMeta(
                name=self._name,
                namespace=NAMESPACE,
                resource_version=lease.metadata.resource_version if lease else None,
            ),
            spec=client.V1LeaseSpec(
                holder_identity=self._holder if holder is None else holder,
                lease_duration_seconds=self._lasts_s,
                acquire_time=spec.acquire_time if mine else now,
                renew_time=now,
                lease_transitions=(spec.lease_transitions or 0) + (lease is not None and not mine),
            ),
        )


def _later_than(before: datetime | None) -> datetime:
    """Return this machine's time, for people. It differs from `before`: otherwise nobody would see the renewal."""
    now = datetime.now(UTC)
    # The client omits a zero fraction, and the API accepts no MicroTime without a fraction.
    now = now.replace(microsecond=now.microsecond or 1)
    return now if now != before else now + timedelta(microseconds=1)
