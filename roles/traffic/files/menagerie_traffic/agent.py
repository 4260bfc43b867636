"""Follows this node's pods, keeps the table as it must be, and adds up its counters.

The table counts without this program. An address that it no longer confirms leaves the table automatically after
`layout.ADDRESS_LIFE_S`; then its packets count as of unknown pods, and no later pod gets them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from . import attribution, layout, metrics, totals
from .api import Following
from .attribution import Held
from .reservations import Reservations
from .table import Live, Table

POLL_S = 0.1
"""An address that a pod gives back is out of the table after this time: one stat(2) each."""
LOOK_S = 1.0
"""At most this much counting is lost if somebody deletes the table."""
SETTLE_S = 10.0
"""Every map is compared with what it must have."""
CONFIRM_S = layout.ADDRESS_LIFE_S / 3


class Settings(NamedTuple):
    """every_s: seconds from one writing of totals and metrics to the next."""

    metrics: str
    totals: str = totals.FILE
    every_s: float = 10.0


class Agent:
    def __init__(
        self,
        table: Table,
        reservations: Reservations,
        following: Following,
        settings: Settings,
        report: Callable[[str], None],
    ) -> None:
        self._table, self._reservations, self._following = table, reservations, following
        self._settings, self._report = settings, report
        self._boot = totals.boot()
        self._state = self._kept()
        self._mapped: dict[str, str] = {}
        self._waiting: frozenset[str] = frozenset()
        self._generation = 0
        self._due = dict.fromkeys(("look", "settle", "write", "confirm"), 0.0)

    def start(self) -> None:
        """Make the table, or go on with the one that is there. Pods that are still the same keep their addresses."""
        live = self._table.live()
        self._read(live.handle)
        self._attribute()
        same = self._state.table == totals.Table(self._boot, live.handle, self._table.layout)
        if same and self._table.is_whole(live):
            self._mapped = _namespaces(live)
            self._apply()
        if not same or not self._table.is_whole(live) or not self._agrees(self._table.live()):
            self._rebuild()
        self._write()

    def step(self, wait: Callable[[float], bool]) -> None:
        """Wait for a change for a moment, then do what is due. wait: for how long; returns whether the pods changed."""
        pods_changed = wait(POLL_S)
        try:
            if pods_changed or self._waiting or self._reservations.changed():
                self._follow()
            if self._is_due("look", LOOK_S):
                self._look(full=self._is_due("settle", SETTLE_S))
            if self._is_due("confirm", CONFIRM_S):
                self._table.change(sorted(self._mapped), self._mapped)
            if self._is_due("write", self._settings.every_s):
                self._write()
        except OSError as error:
            self._report(f"the table is made again: {error}")
            self._rebuild()

    def stop(self) -> None:
        """Keep the totals. The table stays, and counts on."""
        self._read(self._table.handle())
        totals.write(self._state, self._settings.totals)

    def _kept(self) -> totals.State:
        path = self._settings.totals
        try:
            return totals.read(path)
        except ValueError as error:
            os.replace(path, f"{path}.damaged")
            self._report(f"{error}; it is kept as {path}.damaged, and totals start at the kernel's counters")
            return totals.fresh()

    def _is_due(self, name: str, every_s: float) -> bool:
        now = time.monotonic()
        if now < self._due[name]:
            return False
        self._due[name] = now + every_s
        return True

    def _attribute(self) -> None:
        sandboxes = self._reservations.held()
        result = attribution.attributed(sandboxes, self._following.pods, self._state.held)
        self._waiting = result.waiting
        self._state = self._state._replace(held=result.held)

    def _follow(self) -> None:
        before = self._state.held
        self._attribute()
        if self._state.held != before:
            self._apply()
            self._read(self._table.handle())
            totals.write(self._state, self._settings.totals, lasting=False)

    def _apply(self) -> None:
        """Bring the kernel's addresses to what is attributed now."""
        desired = _of(self._state.held)
        removed, added = attribution.change(self._mapped, desired)
        if removed or added:
            self._table.change(removed, added)
        self._mapped = desired

    def _look(self, full: bool) -> None:
        """Read the counters, and make the table again if somebody changed it."""
        generation = self._table.generation()
        if generation != self._generation or full:
            live = self._table.live(full)
            if not self._table.is_whole(live) or not self._agrees(live):
                lost = "deleted" if not live.handle else "changed"
                self._report(f"somebody {lost} table {layout.TABLE}: at most {LOOK_S:.0f} s were not counted")
                self._rebuild()
                return
            self._generation = generation
        self._read(self._state.table.handle)

    def _agrees(self, live: Live) -> bool:
        return all(_namespaces_of(names) == self._mapped for names in live.addresses.values())

    def _read(self, handle: int) -> None:
        """Add up what the kernel has counted."""
        table = totals.Table(self._boot, handle, self._state.table.layout)
        self._state = totals.counted(self._state, table, self._table.counters())

    def _rebuild(self) -> None:
        self._read(self._table.handle())
        desired = _of(self._state.held)
        self._table.rebuild(desired)
        self._mapped, self._generation = desired, 0
        self._state = self._state._replace(table=self._state.table._replace(layout=self._table.layout))
        self._read(self._table.handle())

    def _write(self) -> None:
        """Write totals and metrics, and forget namespaces that left long ago."""
        now = time.time()
        self._state, unused = totals.idle(self._state, self._mapped.values(), now)
        if unused:
            self._table.forget(unused)
        totals.write(self._state, self._settings.totals)
        hosts = attribution.unattributed((self._following.pods or {}).values())
        said = metrics.Now(len(self._mapped), len(self._waiting), hosts, self._following.heard_at)
        totals.place(self._settings.metrics, metrics.text(self._state, said))


def run(agent: Agent, changed: threading.Event, stopped: threading.Event) -> None:
    """Run until `stopped`. changed: set when the API says something new."""

    def wait(seconds: float) -> bool:
        is_set = changed.wait(seconds)
        changed.clear()
        return is_set

    agent.start()
    while not stopped.is_set():
        agent.step(wait)
    agent.stop()


def _of(held: dict[str, Held]) -> dict[str, str]:
    return {address: each.namespace for address, each in held.items()}


def _namespaces(live: Live) -> dict[str, str]:
    """Return address -> namespace, from the first map."""
    return _namespaces_of(next(iter(live.addresses.values()), {}))


def _namespaces_of(names: dict[str, str]) -> dict[str, str]:
    return {address: parts[2] for address, name in names.items() if (parts := layout.named(name))}
