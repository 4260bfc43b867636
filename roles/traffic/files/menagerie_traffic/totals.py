"""Totals that never go backwards, whatever happens to the kernel's counters, and the file that keeps them.

The file has each counter's total together with the kernel's value at that moment. After a restart, the kernel's counters
have gone on, so nothing is missing. A counter that is lower than before, or of another table, starts at zero.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .attribution import Held
from .layout import named
from .table import Count

FILE = "/var/lib/menagerie/traffic/totals.json"
FORMAT = 1
BOOT = "/proc/sys/kernel/random/boot_id"
FORGET_S = 86400
"""How long totals of a namespace stay after its last pod here. A scrape takes them within minutes."""


class Table(NamedTuple):
    """Which table the kernel's values are of. handle: 0 for none."""

    boot: str = ""
    handle: int = 0
    layout: str = ""


class State(NamedTuple):
    """What outlives the program. kernel: counter -> its value in the kernel when `totals` had this value.

    resets: how often the kernel lost a table's counters. left: namespace -> Unix time when its last pod here ended.
    """

    table: Table
    totals: dict[str, Count]
    kernel: dict[str, Count]
    held: dict[str, Held]
    resets: int
    left: dict[str, float]


def fresh() -> State:
    return State(Table(), {}, {}, {}, 0, {})


def counted(state: State, table: Table, kernel: Mapping[str, Count]) -> State:
    """Return the state after reading the kernel's counters of a table."""
    same = (state.table.boot, state.table.handle) == (table.boot, table.handle)
    is_reset = not same and bool(state.table.handle)
    totals = dict(state.totals)
    for name, now in kernel.items():
        last = state.kernel.get(name, Count(0, 0)) if same else Count(0, 0)
        if now.bytes < last.bytes or now.packets < last.packets:
            last, is_reset = Count(0, 0), True
        total = totals.get(name, Count(0, 0))
        totals[name] = Count(total.bytes + now.bytes - last.bytes, total.packets + now.packets - last.packets)
    return state._replace(table=table, totals=totals, kernel=dict(kernel), resets=state.resets + is_reset)


def idle(state: State, namespaces: Iterable[str], now: float) -> tuple[State, list[str]]:
    """Return the state without namespaces that have had no pod here for `FORGET_S`, and their counters in the kernel."""
    here = set(namespaces)
    known = {each[2] for each in map(named, {*state.totals, *state.kernel}) if each and each[2]}
    left = {each: state.left.get(each, now) for each in known - here}
    gone = {each for each, since in left.items() if now - since > FORGET_S}
    kept = {name: count for name, count in state.totals.items() if _namespace(name) not in gone}
    unused = [name for name in state.kernel if _namespace(name) in gone]
    left = {each: since for each, since in left.items() if each not in gone}
    return state._replace(totals=kept, left=left), sorted(unused)


def _namespace(name: str) -> str:
    parts = named(name)
    return parts[2] if parts else ""


def read(path: str = FILE) -> State:
    """Return the state that a file keeps, a fresh one without it. ValueError for a damaged file."""
    try:
        with open(path) as handle:
            plain = json.load(handle)
    except FileNotFoundError:
        return fresh()
    try:
        if plain["format"] != FORMAT:
            raise ValueError(f"{path} has format {plain['format']!r}, this program writes {FORMAT}")
        return State(
            Table(*plain["table"]),
            {name: Count(*value) for name, value in plain["totals"].items()},
            {name: Count(*value) for name, value in plain["kernel"].items()},
            {address: Held(*value) for address, value in plain["held"].items()},
            int(plain["resets"]),
            {name: float(value) for name, value in plain["left"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None


def write(state: State, path: str = FILE, lasting: bool = True) -> None:
    plain: dict[str, Any] = {"format": FORMAT, **state._asdict()}
    place(path, json.dumps(plain, sort_keys=True), lasting)


def place(path: str, text: str, lasting: bool = False) -> None:
    """Replace a file atomically. lasting: it is whole after a power cut too. Any user may read it."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w") as handle:
        handle.write(text)
        os.fchmod(handle.fileno(), 0o644)
        if lasting:
            handle.flush()
            os.fsync(handle.fileno())
    os.replace(beside, path)


def boot() -> str:
    with open(BOOT) as handle:
        return handle.read().strip()
