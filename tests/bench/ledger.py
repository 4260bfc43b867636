"""``python -m tests.bench.ledger``: a day of a ledger of 7,500 nodes, made from its journal: time and memory.

The journal is made up, with a seed: nodes of 8 GPUs, eight pods of DaemonSets on each, jobs one after another on every node, nodes
that die and come back, a reading of each node's power every ten minutes and of its counters of bytes every half hour, and a segment a
minute, in a folder in place of a bucket. Another process counts the day and writes JSON
and Parquet, so that its memory is measured alone. The requests of a real bucket are not in the time.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import FailedError
from cluster.project import ROOT
from controllers.bookkeeping.parquet import to_parquet
from controllers.bookkeeping.store import LedgerStore
from controllers.metering import day as days
from controllers.metering.facts import (
    WAYS,
    CountersFact,
    EnergyFact,
    EnergySource,
    Entry,
    HostFact,
    PodFact,
    PowerFact,
    PriceFact,
    Room,
    SpaceFact,
    Subject,
    Use,
)
from controllers.metering.journal import Segment
from operations.record.store import FolderStore
from tests.bench import alone
from tests.bench.figures import Figure

NODES, TEAMS, DAEMONS = 7500, 300, 8
DAY = date(2026, 11, 26)
AIM_S, AIM_MB = 60.0, 500.0
ROUNDS = 3
_MINUTE_S, _HOUR_S = 60, 3600
_SHORT_S, _LONG_S = 600, 6 * _HOUR_S
"""Lengths of jobs."""
_POWER_S, _COUNTERS_S = 600, 1800
_ROOM, _DAEMON = Room(8, 96_000, 1_000_000), Room(0, 100, 128)


def measure(say: Callable[[str], None], nodes: int = NODES, rounds: int = ROUNDS) -> list[Figure]:
    """Count the same day `rounds` times, each in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="menagerie-ledger-") as path:
        pods = write(Path(path), nodes)
        say(f"a journal of {nodes:,} nodes and {pods:,} pods in a day")
        taken = []
        for number in range(1, rounds + 1):
            command = [sys.executable, "-m", "tests.bench.ledger", "--count", path]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise FailedError(f"the day was not counted: {done.stderr.strip()[-500:]}", code="bench")
            taken.append(json.loads(done.stdout))
            say(f"round {number}: {taken[-1]}")
    return summary(nodes, pods, taken)


def summary(nodes: int, pods: int, taken: list[dict[str, float]]) -> list[Figure]:
    """Return the figures. Aims are for the whole number of nodes."""
    is_whole = nodes == NODES
    what = f"a day of a ledger of {nodes:,} nodes"
    note = f"{pods:,} pods in the day, from {taken[0]['segments']:.0f} segments in a folder to JSON and Parquet; one process"
    return [
        Figure(what, "s", tuple(each["seconds"] for each in taken), AIM_S if is_whole else None, note),
        Figure(f"{what}, CPU", "s", tuple(each["cpu"] for each in taken)),
        Figure(f"{what}, peak memory", "MB", tuple(each["mb"] for each in taken), AIM_MB if is_whole else None),
        Figure(f"{what}, its JSON", "MB", tuple(each["json_mb"] for each in taken)),
        Figure(f"{what}, its Parquet", "MB", tuple(each["parquet_mb"] for each in taken)),
    ]


def write(folder: Path, nodes: int) -> int:
    """Write the journal of a day into a folder. Return the number of pods."""
    store = LedgerStore(FolderStore(folder, "a folder"))
    start, end = days.bounds(DAY)
    entries = sorted(_entries(nodes, start, end), key=lambda entry: entry.since)
    pods = sum(entry.subject is Subject.POD and entry.fact is not None for entry in entries)
    first = start - _HOUR_S
    before = [entry for entry in entries if entry.since <= first]
    store.append(Segment("bench", first, first, 0, True, tuple(before)))
    at, number = first, len(before)
    while at < end + _HOUR_S:
        last = number
        while last < len(entries) and entries[last].since <= at + _MINUTE_S:
            last += 1
        store.append(Segment("bench", at, at + _MINUTE_S, at, False, tuple(entries[number:last])))
        at, number = at + _MINUTE_S, last
    return pods


def count(folder: Path) -> dict[str, float]:
    """Count the day. Return seconds, sizes and the peak of this process's memory; FailedError if the day does not close."""
    began, cpu = time.monotonic(), time.process_time()
    day = LedgerStore(FolderStore(folder, "a folder")).rebuild("bench", DAY, days.bounds(DAY)[1] + _HOUR_S)
    data, table = day.to_bytes(), to_parquet(day)
    if day.all_missing:
        raise FailedError(f"the day is incomplete: {'; '.join(day.all_missing)}", code="bench")
    return {
        "seconds": time.monotonic() - began,
        "cpu": time.process_time() - cpu,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "json_mb": len(data) / 1e6,
        "parquet_mb": len(table) / 1e6,
        "segments": day.document["made"]["segments"],
    }


def _entries(nodes: int, start: int, end: int) -> Iterator[Entry]:
    chance = random.Random(7)
    begin = start - 2 * _HOUR_S
    for team in range(TEAMS):
        yield Entry(begin, Subject.SPACE, f"team-{team}", SpaceFact(f"team-{team}"))
    for pool in range(4):
        yield Entry(begin, Subject.PRICE, f"pool-{pool}", PriceFact(20_000_000 + pool, "spec"))
        yield Entry(begin, Subject.ENERGY, f"pool-{pool}", EnergyFact(EnergySource.BMC, 1900, 8100, 140_000))
    for number in range(nodes):
        yield from _node(f"node-{number}", number, chance, begin, end)
        yield from _readings(f"node-{number}", number, chance, begin, end)


def _node(name: str, number: int, chance: random.Random, begin: int, end: int) -> Iterator[Entry]:
    team = f"team-{number % TEAMS}" if number % 3 == 0 else ""
    serving = HostFact(f"pool-{number % 4}", Use.HELD if team else Use.FREE, False, team, _ROOM)
    yield Entry(begin, Subject.HOST, name, serving)
    if number % 50 == 0:
        dies = chance.randrange(begin, end - _HOUR_S)
        yield Entry(dies, Subject.HOST, name, serving._replace(idle=Use.BROKEN, down=True))
        yield Entry(dies + 1800, Subject.HOST, name, serving)
    for daemon in range(DAEMONS):
        yield Entry(begin, Subject.POD, f"{name}-daemon-{daemon}", PodFact("kube-system", name, _DAEMON))
    at, job = begin + chance.randrange(_HOUR_S), 0
    while at < end:
        ends = at + chance.randrange(_SHORT_S, _LONG_S)
        space = f"team-{chance.randrange(TEAMS)}"
        whole = chance.random() < 0.7
        for part in range(1 if whole else 4):
            need = Room(8, 64_000, 500_000) if whole else Room(2, 16_000, 100_000)
            yield Entry(at, Subject.POD, f"{name}-job-{job}-{part}", PodFact(space, name, need))
            yield Entry(ends, Subject.POD, f"{name}-job-{job}-{part}", None)
        at, job = ends + chance.randrange(_MINUTE_S, 1800), job + 1


def _readings(name: str, number: int, chance: random.Random, begin: int, end: int) -> Iterator[Entry]:
    """Yield readings of a node's power, and of its counters: of three namespaces."""
    for at in range(begin + number % _POWER_S, end + _HOUR_S, _POWER_S):
        yield Entry(at, Subject.POWER, name, PowerFact(chance.randrange(1800, 8200)))
    spaces = [f"team-{(number + other) % TEAMS}" for other in range(2)] + ["kube-system"]
    reached = 0
    for at in range(begin + number % _COUNTERS_S, end + _HOUR_S, _COUNTERS_S):
        reached += chance.randrange(10**10)
        counts = [
            (space, tuple(reached + other * (way % 2) for way in range(len(WAYS))))
            for other, space in enumerate(spaces)
        ]
        yield Entry(at, Subject.COUNTERS, name, CountersFact("", 0, tuple(sorted(counts))))


def main(
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes.")] = NODES,
    rounds: Annotated[int, typer.Option(min=1, help="How often the day is counted.")] = ROUNDS,
    count_: Annotated[Path | None, typer.Option("--count", hidden=True)] = None,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure how long a day of a ledger takes, and its memory."""
    if count_:
        print(json.dumps(count(count_)))
        return
    alone.run(lambda say: measure(say, nodes, rounds), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, FailedError)
