"""Checks that a fault has its effect, polled during the fault until the effect shows or time runs out.

The parsers are pure: /proc/<pid>/status, nftables' counters, etcd's metrics, a unit's journal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clients.waiting import wait_until
from cluster.errors import TimedOutError
from sandbox.lab.errors import LabError
from tests.bench import prometheus

SEEN_S = 30.0
"""How long to wait for an effect. The load writes ten times a second, and an election takes seconds."""
FSYNC = "etcd_disk_wal_fsync_duration_seconds"
NO_SPACE = "no space left on device"
_FSYNCS = 3
"""Fsyncs to look at, at least: one may have started before the disk was slow."""


class NoEffectError(LabError):
    """A fault was injected and had no visible effect; the text says what was checked."""


def until_seen(fault: str, missing: Callable[[], str], within_s: float = SEEN_S) -> None:
    """Poll until a fault's effect shows. missing() returns what it sees instead, "" when it shows. Raises NoEffectError."""
    try:
        wait_until(missing, within_s, lambda _: None)
    except TimedOutError as error:
        raise NoEffectError(f"{fault} had no effect: {error}") from None


def not_paused(status: str) -> str:
    """Return why /proc/<pid>/status shows no stopped process, "" if it does: it has T when stopped (proc_pid_status(5))."""
    match = re.search(r"^State:\s+(.*)$", status, re.MULTILINE)
    state = match[1] if match else "nothing"
    return "" if state.startswith("T") else f"State in /proc is {state}, not T"


@dataclass(frozen=True)
class Fsyncs:
    """Fsyncs of an etcd's log since its start: their number, and their seconds in total."""

    count: float
    seconds: float

    @classmethod
    def of(cls, metrics: str) -> Fsyncs:
        return cls(prometheus.total(metrics, f"{FSYNC}_count"), prometheus.total(metrics, f"{FSYNC}_sum"))


def not_slower(before: Fsyncs, after: Fsyncs, delay_s: float) -> str:
    """Return why fsyncs were not slower, "" if each took the injected delay longer, except one that was already running."""
    count, took = after.count - before.count, after.seconds - before.seconds
    if count >= _FSYNCS and took >= delay_s * (count - 1):
        return ""
    return f"{FSYNC} rose by {took:.3f} s in {count:.0f} fsyncs; expected {delay_s:g} s more each, {_FSYNCS} at least"


def not_full(journal: str) -> str:
    """Return why an etcd's journal shows no full disk, "" if it does. A member that can't create its next log continues."""
    if re.search(rf'"level":"(fatal|panic)".*{NO_SPACE}', journal):
        return ""
    last = journal.strip().rpartition("\n")[2][:300]
    return f"the member did not exit with {NO_SPACE!r}; the end of its journal: {last or 'nothing'}"


def not_cut(listing: str, share: int) -> str:
    """Return why `nft list table` shows no cut, "" if it does. Each chain counts all packets, then the dropped ones."""
    counts = [int(packets) for packets in re.findall(r"counter packets (\d+)", listing)]
    pairs = list(zip(counts[::2], counts[1::2], strict=False))
    counters = (
        "; ".join(f"{dropped} of {total} packets dropped" for total, dropped in pairs) or "no rule counts packets"
    )
    is_both_ways = len(pairs) == 2 and all(0 < dropped for _, dropped in pairs)
    is_cut = is_both_ways and (share >= 100 or any(dropped < total for total, dropped in pairs))
    return "" if is_cut else f"nftables counts, in and out: {counters}"


def not_traced(pid: int, tracer: int) -> str:
    """Return why a process is not traced, "" if all its threads have this tracer (proc_pid_status(5))."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    except OSError:
        return f"process {pid} or one of its threads has ended"
    traced = sum(f"\nTracerPid:\t{tracer}\n" in text for text in threads)
    return "" if traced == len(threads) > 0 else f"{traced} of {len(threads)} threads of process {pid} are traced"
