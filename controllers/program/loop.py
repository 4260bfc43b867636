"""Run rounds while the Lease is held; wait for it before that, and after losing it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import urllib3
from kubernetes.client.exceptions import ApiException
from prometheus_client import Gauge

from clients.lease import HeldError, Lease
from clients.telemetry import Answer, Metrics, Pages, Sample, wellness
from cluster.errors import MenagerieError
from controllers.program.work import RoundOutcome, Trouble, Work

log = logging.getLogger(__name__)
PREFIX = "menagerie_controller_"
GAUGES = {
    "undecided": "Conflicts that wait for a decision; the log names them.",
    "size": "Number of things that the last round saw, by kind.",
    "last_success_timestamp_seconds": "Unix time of the last successful round.",
    "round_seconds": "Duration of the last round.",
}
"""Name -> meaning. docs/how-to/controllers.md lists all metrics; a test compares them."""

PASSES = (ApiException, urllib3.exceptions.HTTPError, MenagerieError)
"""Errors that may be gone in a later round. Any other error ends the process, and another process takes over."""
STUCK_S = 600.0
"""After this long without a change, a finished round or a finished wait, a kubelet should restart the process."""
FRESH_S = 60.0
"""A pod on standby is ready if the API answered at most this long ago."""


class Loop:
    """The loop of a controller. clock: Unix time. pause: sleeps for so many seconds, or raises to end the loop."""

    def __init__(
        self,
        work: Work,
        lease: Lease,
        every_s: float,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._work, self._lease, self._every_s = work, lease, every_s
        self._clock, self._pause = clock, pause
        self._lock = threading.Lock()
        self._metrics = metrics = Metrics(PREFIX, GAUGES)
        self._rounds = metrics.counter("rounds", "Rounds, by outcome.", "end")
        self._changes = metrics.counter("changes", "Changes that the API accepted.")
        self._failures = metrics.counter("failures", "Changes that the API refused.")
        leader = Gauge(f"{PREFIX}leader", "1 while this process holds the Lease.", registry=metrics.registry)
        leader.set_function(lambda: float(lease.held()))
        self._success_s: float | None = None
        self._active_s = time.monotonic()
        self._answered_s: float | None = None
        self._troubles: tuple[Trouble, ...] = ()

    def run(self) -> None:
        """Run until `pause` or an unexpected error raises."""
        while True:
            try:
                with self._lease.holding(self._stand_by):
                    log.info("acquired Lease %s: this pod acts now", self._lease.name)
                    while self._lease.held():
                        began_s = time.monotonic()
                        self.round()
                        # From start to start, so that a long round does not come on top: API servers forget changes.
                        took_s = time.monotonic() - began_s
                        self._pause(max(self._every_s - took_s, self._every_s / 4))
                log.warning("lost Lease %s: this pod no longer acts", self._lease.name)
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                log.warning("can't read or update the Lease: %s", words(error))
                self._touch()
                self._pause(self._lease.again_s)

    def round(self) -> None:
        """Run one round. Errors that may pass are logged."""
        start_s = time.monotonic()
        try:
            outcome = self._work.once(self._touch)
            self._count(outcome, time.monotonic() - start_s)
            troubles = outcome.troubles()
        except PASSES as error:
            self._rounds.labels("failed").inc()
            troubles = (Trouble(logging.ERROR, words(error)),)
        for trouble in troubles:
            if trouble not in self._troubles:  # log each problem when it appears, not in every round
                log.log(trouble.level, "%s", trouble.text)
        if self._troubles and not troubles:
            log.info("recovered: no problems in the last round")
        self._troubles = troubles
        self._touch(answered=self._lease.held())

    def pages(self) -> Pages:
        """Return the pages /metrics, /healthz and /readyz."""
        return {"/metrics": self._metrics.page, "/healthz": self._alive, "/readyz": self._ready}

    def _stand_by(self, held: HeldError) -> None:
        if self._answered_s is None:
            log.info("on standby: %s", str(held).partition(" on this cluster")[0])
        self._touch(answered=True)
        self._pause(self._lease.again_s)

    def _touch(self, *, answered: bool = False) -> None:
        now = time.monotonic()
        with self._lock:
            self._active_s = now
            if answered:
                self._answered_s = now

    def _count(self, outcome: RoundOutcome, took_s: float) -> None:
        self._rounds.labels(outcome.end).inc()
        self._changes.inc(outcome.changes)
        self._failures.inc(len(outcome.failed))
        if outcome.end == "done":
            self._success_s = self._clock()
        self._metrics.replace(self._samples(outcome, took_s))

    def _samples(self, outcome: RoundOutcome, took_s: float) -> Iterator[Sample]:
        for name, number in outcome.sizes.items():
            yield "size", {"of": name}, number
        yield "undecided", {}, len(outcome.undecided)
        yield "round_seconds", {}, took_s
        if self._success_s is not None:
            yield "last_success_timestamp_seconds", {}, self._success_s

    def _alive(self) -> Answer:
        with self._lock:
            silent_s = time.monotonic() - self._active_s
        return wellness(silent_s <= STUCK_S, f"last activity {silent_s:.0f} s ago")

    def _ready(self) -> Answer:
        if self._lease.held():
            return wellness(True, f"holds {self._lease.name}")
        with self._lock:
            answered = self._answered_s
        if answered is None:
            return wellness(False, "the API has not answered yet")
        ago_s = time.monotonic() - answered
        return wellness(ago_s <= FRESH_S, f"on standby; the API answered {ago_s:.0f} s ago")


def words(error: BaseException) -> str:
    """Return an expected error as one line."""
    if isinstance(error, ApiException):
        body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
        return f"the API server returned {error.status} {error.reason}: {' '.join(body.split())[:500]}"
    if isinstance(error, urllib3.exceptions.HTTPError) and not isinstance(error, MenagerieError):
        return f"the API server does not answer: {error}"
    return str(error)
