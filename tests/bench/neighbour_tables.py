"""The kernel's neighbour tables, which the whole machine shares: thresholds, counters, and lines in the kernel's log."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from network.neighbours import Thresholds

_SAVED = Path("/run/menagerie-bench-neighbours.json")
_OVERFLOW = b"neighbor table overflow"
_COUNTERS = {"ipv4": "arp_cache", "ipv6": "ndisc_cache"}


def threshold(family: str, number: int) -> Path:
    """Return the file of gc_thresh1, 2 or 3 (arp(7)). Only the first network namespace has it."""
    return Path(f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}")


def read_thresholds() -> dict[str, list[int]]:
    return {family: [int(threshold(family, n).read_text()) for n in (1, 2, 3)] for family in _COUNTERS}


def set_thresholds(chosen: Thresholds) -> None:
    _write({family: list(asdict(chosen).values()) for family in _COUNTERS})


def _write(values: dict[str, list[int]]) -> None:
    for family, numbers in values.items():
        for number, value in enumerate(numbers, 1):
            threshold(family, number).write_text(str(value))


@contextmanager
def thresholds_put_back() -> Iterator[None]:
    """Restore the thresholds after a block. First restore those that a killed run saved."""
    with suppress(FileNotFoundError, ValueError):
        _write(json.loads(_SAVED.read_text()))
    before = read_thresholds()
    _SAVED.write_text(json.dumps(before))
    try:
        yield
    finally:
        _write(before)
        _SAVED.unlink()


def _column(family: str, name: str) -> list[int]:
    head, *rows = (line.split() for line in Path(f"/proc/net/stat/{_COUNTERS[family]}").read_text().splitlines())
    return [int(row[head.index(name)], 16) for row in rows]


def overflows(family: str) -> int:
    """Return the number of overflows of all CPUs."""
    return sum(_column(family, "table_fulls"))


def entries(family: str) -> int:
    """Return the number of entries in the table, which every CPU reports."""
    return max(_column(family, "entries"))


@contextmanager
def log() -> Iterator[Callable[[], int]]:
    """Provide a function that counts the lines about overflows in the kernel's log since this call."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)

    def count() -> int:
        lines = 0
        while True:
            try:
                lines += _OVERFLOW in os.read(log, 8192)
            except BlockingIOError:
                return lines
            except BrokenPipeError:  # lines were overwritten before being read
                continue

    try:
        yield count
    finally:
        os.close(log)
