"""One round: read what changed since the last one, write it as a segment of the journal, and count the days that have ended.

A process that has just become the leader goes on from the versions in the last segment. If the API server no longer knows
what happened since, everything is listed, and the time in between becomes a gap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from http import HTTPMethod
from typing import Any, Protocol

from clients.api_errors import ApiStatusError
from clients.kube import Kube
from clients.nodes import renewals
from clients.rest import PATIENT_S, Rest
from clients.watching import Change, ExpiredError, Watching
from cluster.spec import Cluster
from cluster.tenancy import Tenancy
from controllers.bookkeeping.clock import LedgerClock
from controllers.bookkeeping.parquet import to_parquet
from controllers.bookkeeping.power import Power, Reading, machines_of
from controllers.bookkeeping.store import LedgerStore, OtherWriterError
from controllers.metering import day as days
from controllers.metering.day import Day
from controllers.metering.declared import energies_of, prices_of
from controllers.metering.facts import Entry, PowerFact, Subject
from controllers.metering.journal import DAY_S, Segment
from controllers.metering.known import Book, down
from controllers.metering.ledger import HOUR_S
from controllers.metering.observe import Look, Observer
from controllers.tenancy.sync.run import ApiAccess

KINDS = {
    "Namespace": Subject.SPACE,
    "Node": Subject.HOST,
    "Pod": Subject.POD,
    "PersistentVolume": Subject.VOLUME,
}
WHOLE_S = 6 * 3600
"""Time between two segments with everything. A day is counted from the last one before it."""
_MOST_WAITING = 1440
"""Segments that wait for a bucket that does not answer. With more, the journal begins again, with a gap."""
_NODE_LEASES = "kube-node-lease"
log = logging.getLogger(__name__)


class Progress(Protocol):
    """Called often, so that the health check sees that the process is at work."""

    def __call__(self) -> None: ...


@dataclass(frozen=True)
class Kept:
    """The result of a round. days: that were written. incomplete: why the last day that was counted does not close.

    running: the day that has not ended, if it was written.
    """

    segments: int
    days: tuple[Day, ...]
    incomplete: tuple[str, ...]
    sizes: dict[str, int] = field(default_factory=dict)
    running: Day | None = None


class Bookkeeper:
    """Keeps the ledger of one cluster.

    store: where; it may be replaced by another way to the same objects. power: the readings of machines' power, None if there are none;
    it may be replaced, too.
    """

    def __init__(
        self, access: ApiAccess, store: LedgerStore, settings: Tenancy, clock: LedgerClock | None = None
    ) -> None:
        self._api, self.store, self._settings = access.api(), store, settings
        self.power: Power | None = None
        self._clock = clock or LedgerClock()
        self._book: Book | None = None
        self._watching: dict[str, Watching] = {}
        self._waiting: list[Segment] = []
        self._end = self._whole_at = self._begin = 0
        self._counted: set[tuple[date, int]] = set()
        self._incomplete: tuple[str, ...] = ()
        self._running: tuple[date, int] | None = None

    def once(self, cluster: Cluster, progress: Progress = lambda: None) -> Kept:
        """Run a round. Errors: raises those of the API and of the store; the next round goes on."""
        now = self._clock.at(self._now())
        if self._book is None:
            self._recover(now, progress)
        if segment := self._segment(cluster, max(now, self._end), progress):
            self._waiting.append(segment)
            self._end = segment.end
        written = self._write(progress)
        counted = self._count(cluster, progress)
        running = None if counted else self._count_running(cluster, progress)
        known = [fact for _, fact in self._book.known.values()] if self._book else []
        sizes = self._sizes() | {"hosts that are down": down(known)}
        return Kept(written, counted, self._incomplete, sizes, running)

    def _recover(self, now: int, progress: Progress) -> None:
        """Go on from the journal, if it has an end from which that is possible."""
        history, last = self.store.recent(now)
        progress()
        self._book = Book(history.at_end())
        self._end = history.end
        self._whole_at = 0
        versions = last.versions if last and not history.lost else {}
        self._watching = {kind: Watching(self._api, kind, versions.get(kind, "")) for kind in KINDS}
        self._begin = self.store.begin(now) or self._end

    def _segment(self, cluster: Cluster, at: int, progress: Progress) -> Segment | None:
        """Return what is new; None if no second has passed."""
        assert self._book is not None
        if at == self._end:
            return None
        look = Look(at, self._end)
        reading = _Reading(Observer(cluster, self._settings), self._book, look, self._renewed, progress)
        start = self._end
        try:
            if not all(each.version for each in self._watching.values()):
                raise ExpiredError
            for kind, watching in self._watching.items():
                reading.changes(KINDS[kind], watching.changes())
        except ExpiredError:
            start = at
            for watching in self._watching.values():
                watching.version = ""  # until all have been listed, no watch may go on
            for kind, watching in self._watching.items():
                reading.everything(KINDS[kind], watching.everything())
        reading.machines(cluster)
        reading.power(self.power.turn(machines_of(cluster)) if self.power else ())
        self._book.declared(Subject.PRICE, prices_of(cluster), at)
        self._book.declared(Subject.ENERGY, energies_of(cluster), at)
        whole = start == at or at - self._whole_at >= WHOLE_S or at // DAY_S != self._whole_at // DAY_S
        self._whole_at = at if whole else self._whole_at
        versions = {kind: watching.version for kind, watching in self._watching.items()}
        return Segment(cluster.name, start, at, self._end, whole, self._book.taken(whole=whole), versions)

    def _now(self) -> datetime:
        """Return the API server's time."""
        answer = Rest(self._api, PATIENT_S).send(HTTPMethod.GET, "/version")
        date_ = answer.headers.get("Date")
        if not date_:
            raise ApiStatusError(answer.status, "an answer without a Date")
        return parsedate_to_datetime(date_)

    def _renewed(self) -> dict[str, int]:
        """Return node -> when its kubelet renewed its Lease last."""
        leases = Kube(self._api, timeout_s=PATIENT_S).list("Lease", _NODE_LEASES)
        return {name: int(renewed.timestamp()) for name, renewed in renewals(leases)}

    def _write(self, progress: Progress) -> int:
        """Write the segments that wait, in order. Return how many were written."""
        written = 0
        while self._waiting:
            try:
                self.store.append(self._waiting[0])
            except OtherWriterError:
                self._begin_again()
                raise
            except Exception:
                if len(self._waiting) > _MOST_WAITING:
                    self._begin_again()
                raise
            del self._waiting[0]
            written += 1
            self._begin = self._begin or self._end
            progress()
        return written

    def _begin_again(self) -> None:
        self._book, self._waiting = None, []

    def _count(self, cluster: Cluster, progress: Progress) -> tuple[Day, ...]:
        """Count at most one day that is due, and write it unless it says the same as before."""
        open_ = [each for each in days.due(self._end, (), self._begin) if each not in self._counted]
        due = set(days.due(self._end, self.store.day_keys(), self._begin)) if open_ else set()
        for day, until in open_:
            made = self._counted_day(cluster, day, until) if (day, until) in due else None
            self._counted.add((day, until))
            progress()
            if (day, until) in due:
                return (made,) if made else ()
        return ()

    def _counted_day(self, cluster: Cluster, day: date, until: int) -> Day | None:
        revision = days.newest(self.store.day_keys()).get(day.isoformat(), 0)
        former = self.store.day(day.isoformat(), revision) if revision else None
        if former and former.until >= until:
            return None
        made = self.store.rebuild(cluster.name, day, self.store.first_end(until, self._end), revision + 1)
        self._incomplete = tuple(f"{made.name} is incomplete: {why}" for why in made.missing)
        if former and days.same(former, made):
            return None
        self.store.keep(made, to_parquet(made))
        log.info("counted %s%s", made.name, f", revision {revision + 1}" if revision else "")
        return made

    def _count_running(self, cluster: Cluster, progress: Progress) -> Day | None:
        """Count the day that has not ended, and write it, if it is time."""
        day = datetime.fromtimestamp(self._end, UTC).date()
        start = days.bounds(day)[0]
        if self._running is None or self._running[0] != day:
            self._running = day, max(start, self._begin, self.store.running_end(day))
        every_s = cluster.spec.metering.running_every // 1000 if cluster.spec.metering else HOUR_S
        if not self._begin or (self._end - start) // every_s <= (self._running[1] - start) // every_s:
            return None
        made = self.store.rebuild(cluster.name, day, self._end, is_running=True)
        self.store.keep_running(made)
        self._running = day, self._end
        progress()
        return made

    def _sizes(self) -> dict[str, int]:
        subjects = [subject for subject, _ in self._book.known] if self._book else []
        sizes = {name: subjects.count(subject) for name, subject in (("hosts", Subject.HOST), ("pods", Subject.POD))}
        return sizes | ({"BMCs that do not say their power": self.power.silent} if self.power else {})


@dataclass
class _Reading:
    """Reads objects of one look into the book. renewed: reads kubelets' Leases; called at most once."""

    observer: Observer
    book: Book
    look: Look
    renewed: Callable[[], dict[str, int]]
    progress: Progress
    _renewals: dict[str, int] | None = None

    def changes(self, subject: Subject, changes: Iterable[Change]) -> None:
        """Read what changed of one kind."""
        for change in changes:
            self._thing(subject, change.thing, gone=change.gone)
        self.progress()

    def everything(self, subject: Subject, things: Iterable[dict[str, Any]]) -> None:
        """Read all objects of one kind. Those that are known and not listed are gone, since nobody knows when."""
        listed = {self._thing(subject, thing) for thing in things}
        for of, id in [key for key in self.book.known if key[0] is subject]:
            if id not in listed and not (subject is Subject.HOST and self.observer.is_at_site(id)):
                self.book.gone(of, id, self.look.floor)
        if subject is Subject.HOST:
            self.book.add(self.observer.absent(listed, self.book.hosts(), self.look))
        self.progress()

    def machines(self, cluster: Cluster) -> None:
        """Read the spec: machines that were added to it have not joined, and those that were removed are no hosts."""
        known = self.book.hosts()
        self.book.add(self.observer.absent(known, known, self.look))
        for name in self.observer.removed(known):
            self.book.gone(Subject.HOST, name, self.look.at)

    def power(self, readings: Iterable[Reading]) -> None:
        """Take over what machines drew."""
        hosts = self.book.hosts()
        for each in readings:
            if each.watts is not None and each.name in hosts:
                since = min(max(self.look.at - round(each.age_s), self.look.floor), self.look.at)
                self.book.add([Entry(since, Subject.POWER, each.name, PowerFact(each.watts))])

    def _thing(self, subject: Subject, thing: dict[str, Any], *, gone: bool = False) -> str:
        """Read one object. Anybody may create an unreadable one, which must not keep the others from being counted."""
        metadata = thing["metadata"]
        id = str(metadata["uid"] if subject is Subject.POD else metadata["name"])
        try:
            self._read(subject, id, thing, gone=gone)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("%s %s is not counted, because it can't be read: %r", subject, metadata["name"], error)
        return id

    def _read(self, subject: Subject, id: str, thing: dict[str, Any], *, gone: bool) -> None:
        before = self.book.before(subject, id)
        if subject is Subject.POD:
            self.book.add(self.observer.pod(thing, before, self.look, gone=gone))
        elif gone and subject is Subject.HOST and self.observer.is_at_site(id):
            present = self.book.hosts().keys() - {id}
            self.book.add(self.observer.absent(present, self.book.hosts(), self.look))
        elif gone:
            self.book.gone(subject, id, self.look.at)
        elif subject is Subject.HOST:
            self.book.add(self.observer.host(thing, self._renewal(id, thing), before, self.look))
            # After the host itself, which counts also if nobody can read its counters.
            self.book.add(self.observer.traffic(thing, self.book.before(Subject.COUNTERS, id), self.look))
        elif subject is Subject.SPACE:
            self.book.add(self.observer.space(thing, before, self.look))
        else:
            self.book.add(self.observer.volume(thing, before, self.look))

    def _renewal(self, name: str, node: dict[str, Any]) -> int | None:
        """Return when the kubelet of a node that is not Ready renewed its Lease last; None if that does not matter."""
        if self.observer.is_ready(node):
            return None
        if self._renewals is None:
            self._renewals = self.renewed()
        return self._renewals.get(name)
