"""One of a kind acts on a cluster at a time: a Lease in it, taken and renewed on a condition.

The client library's own election (kubernetes.leaderelection) knows ConfigMaps and no Leases, and ends its process by itself.
Whether a holder lives is seen and not read, as client-go's leaderelection does: its Lease counts as expired once it has stood
unchanged before this process for as long as it lasts, by this process's monotonic clock. No two clocks are ever compared. A process
that has just begun has seen nothing, so it looks for that long at most before it takes over from the dead, and for one renewal until it
knows of the living. Who gives up the Lease makes nobody wait.
"""

from __future__ import annotations

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
"""From the last renewal until somebody else may take it. A holder that could not renew for two thirds of that stops acting."""
_LOOK_S = 1.0
"""Between two looks at a Lease of which it is not known yet whether its holder lives."""


def this_process() -> str:
    """A holder: no other process has the name."""
    return f"{socket.gethostname()}_{os.getpid()}"


class HeldError(LockedError):
    """Another acts on the cluster, or has until lately; the text says who, and for how long at most if it is dead."""


class LostTheLockError(LockedError):
    """The Lease was not renewed in time, or another took it: whoever had it acts no more."""

    code = "taken-over"


class Lease:
    """name: of the Lease, and to people the name of what acts. holder: who asks for it; unique to a process.

    clock: seconds that only grow. pause: sleeps for seconds, or raises to end the wait.
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
        self._seen: tuple[object, ...] = ()
        """What the Lease said when it was seen last, and `_since` when it was first seen to say so."""
        self._since = 0.0

    @property
    def name(self) -> str:
        return self._name

    @property
    def again_s(self) -> float:
        """Between two renewals, and until whoever waits for it should ask again."""
        return self._lasts_s / 6

    def held(self) -> bool:
        """Whether it is surely ours, for a third of its time at least."""
        return self._renewed is not None and self._clock() - self._renewed < self._lasts_s * 2 / 3

    def check(self) -> None:
        """LostTheLockError unless it is held."""
        if not self.held():
            raise LostTheLockError(f"the Lease {self._name} was lost: it was not renewed in time, or another took it")

    def other(self) -> str:
        """Who else holds it and lives; "" where nobody does. Looks until that is known: for one renewal, or until it has expired.

        Raises kubernetes' ApiException and urllib3's HTTPError.
        """
        began: tuple[object, ...] = ()
        while True:
            other, _ = self._other(self._read())
            began = began or self._seen
            if not other or self._seen != began:
                return other
            self._pause(min(_LOOK_S, self.again_s))

    @contextmanager
    def holding(
        self, wait: Callable[[HeldError], None] | None = None, report: Callable[[str], None] = lambda _: None
    ) -> Iterator[None]:
        """Hold it for the length of a block. wait: told who holds it, to return when it is to be asked for again.

        Without `wait`, HeldError as soon as whoever holds it is seen to live; of one who is dead it is taken once it has expired.
        report: hears, once, whom that waits for, and for how long at most. Raises kubernetes' ApiException and urllib3's HTTPError.
        """
        wait = wait or self._until_it_is_known(report)
        while True:
            began = self._clock()
            try:
                self._take()
            except HeldError as error:
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

    def _until_it_is_known(self, report: Callable[[str], None]) -> Callable[[HeldError], None]:
        """Raises the error once the Lease is another than at the first call."""
        began: tuple[object, ...] = ()

        def wait(error: HeldError) -> None:
            nonlocal began
            if not began:
                began = self._seen
                report(f"{error}; looking whether it lives")
            elif self._seen != began:
                raise error
            self._pause(min(_LOOK_S, self.again_s))

        return wait

    def _take(self) -> None:
        found = self._read()
        if found is None:
            try:
                self._leases.create_namespaced_lease(NAMESPACE, self._body(None), _request_timeout=API_TIMEOUT_S)
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                raise HeldError(self._just_begun) from None
            return
        other, left_s = self._other(found)
        if other:
            raise HeldError(
                f"{other} acts on this cluster as {self._name}; end it first, or wait {left_s:.0f} s at most if it is dead"
            )
        if not self._write(found):
            raise HeldError(self._just_begun)

    def _other(self, found: Any) -> tuple[str, float]:
        """Who else holds it as far as is known, and for how many seconds at most if they are dead; "" where nobody does."""
        spec = (found and found.spec) or client.V1LeaseSpec()
        said = (spec.holder_identity, spec.acquire_time, spec.renew_time, spec.lease_transitions)
        if said != self._seen:
            self._seen, self._since = said, self._clock()
        left_s = (spec.lease_duration_seconds or self._lasts_s) - (self._clock() - self._since)
        if spec.holder_identity == self._holder or left_s <= 0:
            return "", 0.0
        return spec.holder_identity or "", left_s

    @property
    def _just_begun(self) -> str:
        return f"another {self._name} has just begun on this cluster"

    def _renew(self, over: threading.Event) -> None:
        """Until it is over, or lost."""
        while not over.wait(self.again_s):
            began = self._clock()
            try:
                found = self._read()
                if found is None or found.spec.holder_identity != self._holder or not self._write(found):
                    self._renewed = None
                    return
            except (ApiException, urllib3.exceptions.HTTPError):
                continue  # it ends by itself where this goes on
            self._renewed = began

    def _give_up(self) -> None:
        try:
            found = self._read()
            if found is not None and found.spec.holder_identity == self._holder:
                self._write(found, holder="")
        except (ApiException, urllib3.exceptions.HTTPError):
            return  # it ends by itself

    def _read(self) -> Any:
        """None where there is none."""
        try:
            return self._leases.read_namespaced_lease(self._name, NAMESPACE, _request_timeout=API_TIMEOUT_S)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _write(self, found: Any, holder: str | None = None) -> bool:
        """Whether nobody wrote in between."""
        try:
            self._leases.replace_namespaced_lease(
                self._name, NAMESPACE, self._body(found, holder), _request_timeout=API_TIMEOUT_S
            )
        except ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    def _body(self, found: Any, holder: str | None = None) -> client.V1Lease:
        spec = (found and found.spec) or client.V1LeaseSpec()
        mine = spec.holder_identity == self._holder
        now = _later_than(spec.renew_time)
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


def _later_than(before: datetime | None) -> datetime:
    """This machine's time, for people; moved on where it would say what stands there already, for then nobody would see a renewal."""
    now = datetime.now(UTC)
    # The client leaves a fraction of nothing out, and the API takes no MicroTime without one.
    now = now.replace(microsecond=now.microsecond or 1)
    return now if now != before else now + timedelta(microseconds=1)
