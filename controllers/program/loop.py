"""Rounds for as long as the Lease is held; before that, and after it is lost, waiting for it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

import urllib3
from kubernetes.client.exceptions import ApiException

from clients.lease import HeldError, Lease
from clients.telemetry import Answer, Labels, Meanings, Pages, exposition, wellness
from cluster.errors import MenagerieError
from controllers.program.work import Outcome, Say, Work

PREFIX = "menagerie_controller_"
MEANINGS: Meanings = {
    "leader": ("gauge", "1 while this process holds the Lease."),
    "rounds_total": ("counter", "Rounds, by how they ended."),
    "changes_total": ("counter", "Changes that the API took."),
    "failures_total": ("counter", "Changes that the API refused."),
    "undecided": ("gauge", "What waits for somebody's decision; the log says what."),
    "size": ("gauge", "What the last round saw, by what it is."),
    "last_success_timestamp_seconds": ("gauge", "When the last round ended well, Unix time."),
    "round_seconds": ("gauge", "How long the last round took."),
}
"""docs/how-to/controllers.md has them too; a test compares."""

PASSES = (ApiException, urllib3.exceptions.HTTPError, MenagerieError)
"""What a later round may not meet any more. Anything else ends the process, and another takes over."""
STUCK_S = 600.0
"""Without a change, the end of a round or of a wait, after which a kubelet should start it anew."""
FRESH_S = 60.0
"""How long ago the API has to have answered, to be ready."""


class Loop:
    """clock: Unix time; pause: sleeps for seconds, or raises to end all."""

    def __init__(
        self,
        work: Work,
        lease: Lease,
        every_s: float,
        say: Say,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._work, self._lease, self._every_s = work, lease, every_s
        self._say, self._clock, self._pause = say, clock, pause
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._gauges: dict[tuple[str, Labels], float] = {}
        self._moved_s = time.monotonic()
        self._answered_s: float | None = None
        self._troubles: tuple[str, ...] = ()

    def run(self) -> None:
        """Without end."""
        while True:
            try:
                with self._lease.holding(self._stand_by):
                    self._say(f"holds {self._lease.name}: acts from now on")
                    while self._lease.held():
                        self.round()
                        self._pause(self._every_s)
                self._say(f"lost {self._lease.name}: acts no more")
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                self._say(f"the Lease can't be asked for: {words(error)}")
                self._moved()
                self._pause(self._lease.again_s)

    def round(self) -> None:
        """Once; what will pass is told."""
        began = time.monotonic()
        try:
            outcome = self._work.once(self._told)
            self._count(outcome, time.monotonic() - began)
            troubles = outcome.troubles()
        except PASSES as error:
            with self._lock:
                self._counts["rounds_total", (("end", "failed"),)] += 1
            troubles = (words(error),)
        for trouble in troubles:
            if trouble not in self._troubles:  # once, and not with each round
                self._say(trouble)
        if self._troubles and not troubles:
            self._say("in step again")
        self._troubles = troubles
        self._moved(answered=self._lease.held())

    def pages(self) -> Pages:
        """/metrics, /healthz, /readyz."""
        return {"/metrics": self._metrics, "/healthz": self._alive, "/readyz": self._ready}

    def _stand_by(self, held: HeldError) -> None:
        reason = f"stands by: {str(held).partition(' on this cluster')[0]}"
        if self._answered_s is None:
            self._say(reason)
        self._moved(answered=True)
        self._pause(self._lease.again_s)

    def _told(self, text: str) -> None:
        self._say(text)
        self._moved()

    def _moved(self, *, answered: bool = False) -> None:
        now = time.monotonic()
        with self._lock:
            self._moved_s = now
            if answered:
                self._answered_s = now

    def _count(self, outcome: Outcome, took_s: float) -> None:
        with self._lock:
            self._counts["rounds_total", (("end", outcome.end),)] += 1
            self._counts["changes_total", ()] += outcome.made
            self._counts["failures_total", ()] += len(outcome.failed)
            gauges: dict[tuple[str, Labels], float] = {
                ("size", (("of", name),)): number for name, number in outcome.sizes.items()
            }
            gauges["undecided", ()] = len(outcome.undecided)
            gauges["round_seconds", ()] = took_s
            last = self._gauges.get(("last_success_timestamp_seconds", ()))
            success = self._clock() if outcome.end == "done" else last
            if success is not None:
                gauges["last_success_timestamp_seconds", ()] = success
            self._gauges = gauges

    def _metrics(self) -> Answer:
        with self._lock:
            values: Mapping[tuple[str, Labels], float] = {**self._counts, **self._gauges}
        return exposition(PREFIX, MEANINGS, {**values, ("leader", ()): float(self._lease.held())})

    def _alive(self) -> Answer:
        with self._lock:
            silent_s = time.monotonic() - self._moved_s
        return wellness(silent_s <= STUCK_S, f"it moved {silent_s:.0f} s ago")

    def _ready(self) -> Answer:
        if self._lease.held():
            return wellness(True, f"holds {self._lease.name}")
        with self._lock:
            answered = self._answered_s
        if answered is None:
            return wellness(False, "the API has not answered yet")
        ago_s = time.monotonic() - answered
        return wellness(ago_s <= FRESH_S, f"stands by; the API answered {ago_s:.0f} s ago")


def words(error: BaseException) -> str:
    """An error that was foreseen, on one line."""
    if isinstance(error, ApiException):
        body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
        return f"the API server answers {error.status} {error.reason}: {' '.join(body.split())[:500]}"
    if isinstance(error, urllib3.exceptions.HTTPError):
        return f"the API server does not answer: {error}"
    return str(error)
