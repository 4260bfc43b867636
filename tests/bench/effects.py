"""That a fault had its effect: what is looked at while it lasts, until it shows or its time is over.

What reads texts is pure: /proc/<pid>/status, nftables' counters, etcd's metrics, a unit's journal.
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
"""How long an effect is waited for. Writes of the load come ten times a second, an election takes seconds."""
FSYNC = "etcd_disk_wal_fsync_duration_seconds"
NO_SPACE = "no space left on device"
_FSYNCS = 3
"""How many are looked at, at least: one may have begun before the disk was slow."""


class NoEffectError(LabError):
    """A fault was brought about and nothing of it was seen; the text says what was looked at."""


def seen(fault: str, missing: Callable[[], str], within_s: float = SEEN_S) -> None:
    """Look until the effect of a fault shows. missing: what was seen in its place, "" once it shows. Raises NoEffectError."""
    try:
        wait_until(missing, within_s, lambda _: None)
    except TimedOutError as error:
        raise NoEffectError(f"{fault} had no effect: {error}") from None


def not_paused(status: str) -> str:
    """Of /proc/<pid>/status: proc_pid_status(5) has T for a process that a signal has stopped."""
    state = re.search(r"^State:\s+(.*)$", status, re.MULTILINE)
    told = state[1] if state else "nothing"
    return "" if told.startswith("T") else f"State in /proc is {told}, not T"


@dataclass(frozen=True)
class Fsyncs:
    """What an etcd has counted of its log since it started: how often it was written through, seconds in all."""

    count: float
    seconds: float

    @classmethod
    def of(cls, metrics: str) -> Fsyncs:
        return cls(prometheus.total(metrics, f"{FSYNC}_count"), prometheus.total(metrics, f"{FSYNC}_sum"))


def not_slower(before: Fsyncs, after: Fsyncs, delay_s: float) -> str:
    """Whether each fsync since then took as much longer as was injected, but for the one that was under way."""
    count, took = after.count - before.count, after.seconds - before.seconds
    if count >= _FSYNCS and took >= delay_s * (count - 1):
        return ""
    return f"{FSYNC} rose by {took:.3f} s in {count:.0f} fsyncs, of {delay_s:g} s more each and {_FSYNCS} at least"


def not_full(journal: str) -> str:
    """Of an etcd's journal since its disk was filled: a member that only fails to make its next log goes on."""
    if re.search(rf'"level":"(fatal|panic)".*{NO_SPACE}', journal):
        return ""
    last = journal.strip().rpartition("\n")[2][:300]
    return f"the member did not end with {NO_SPACE!r}; the last of its journal: {last or 'nothing'}"


def not_cut(listing: str, share: int) -> str:
    """Of `nft list table`: each chain counts what came by and then what it dropped of it."""
    counts = [int(packets) for packets in re.findall(r"counter packets (\d+)", listing)]
    pairs = list(zip(counts[::2], counts[1::2], strict=False))
    told = "; ".join(f"{lost} of {came} packets dropped" for came, lost in pairs) or "no rule counts packets"
    both = len(pairs) == 2 and all(0 < lost for _, lost in pairs)
    well = both and (share >= 100 or any(lost < came for came, lost in pairs))
    return "" if well else f"nftables counts, in and out: {told}"


def not_traced(pid: int, tracer: int) -> str:
    """Whether all threads of a process are a tracer's; proc_pid_status(5) names it."""
    try:
        threads = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/status")]
    except OSError:
        return f"process {pid} or a thread of it has ended"
    own = sum(f"\nTracerPid:\t{tracer}\n" in text for text in threads)
    return "" if own == len(threads) > 0 else f"{own} of {len(threads)} threads of process {pid} are traced"
