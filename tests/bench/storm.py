"""``python -m tests.bench.storm``: how a storm of Events affects other writes, with a separate etcd and with a shared one.

Control planes on loopback, with the same programs and the rendered flags, on files in memory, where fsync costs nothing. The
etcd with the Events gets a slow disk: strace delays each of its fdatasync calls. Three control planes take turns:

    split        main on the fast disk, Events on the slow one
    both slow    the same, with main on an equally slow disk: the value of the split alone
    one          everything in one etcd, on the slow disk

All have the same clients: some write Events as fast as they are answered, and one makes ordinary writes at a fixed rate. Its
clock starts when each write is due.
"""

from __future__ import annotations

import os
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import FailedError
from tests.bench import alone, load, prometheus
from tests.bench.calls import Api, Login
from tests.bench.figures import Figure
from tests.bench.load import Timed
from tests.bench.loopback import Loopback, LoopbackError, running
from tests.bench.loopback_files import ADMIN, NODES, RESEARCHER
from tests.bench.neighbours import ended_by_signals
from tests.bench.storms import (
    AFTER,
    ARMS,
    ONE,
    QUOTA,
    RATE,
    SPLIT,
    STORMS,
    Arm,
    Round,
    Storm,
    Turns,
    describe,
    summary,
    when_full,
)

STORM_S, WARM_UP_S, ROUNDS = 15.0, 3.0, 2
CLIENTS, CONNECTIONS, ORDINARY_CONNECTIONS = 2, 8, 16
FILLER, FILL_S = 100_000, 60.0
_LEASES = tuple(f"node-{number}" for number in range(50))


def measure(
    say: Callable[[str], None],
    rounds: int = ROUNDS,
    seconds: float = STORM_S,
    storms: Sequence[Storm] = STORMS,
) -> list[Figure]:
    """Measure storms of each kind in turns, then writes while the quota of Events' etcd is full."""
    figures = []
    with ended_by_signals(), load.processes(CLIENTS) as pool:
        for storm in storms:
            with _planes(storm.delay_ms) as planes:
                say(str(storm))
                figures += summary(storm, _turns(planes, pool, storm, rounds, seconds, say))
        with _planes(0.0, QUOTA, (SPLIT, ONE)) as planes:
            failed = {arm.name: failed_when_full(plane) for arm, plane in planes.items()}
    for name, count in failed.items():
        say(f"quota full, {name}: {count} of {AFTER} writes other than Events failed")
    return [*figures, *when_full(failed)]


def _turns(
    planes: Mapping[Arm, Loopback],
    pool: Executor,
    storm: Storm,
    rounds: int,
    seconds: float,
    say: Callable[[str], None],
) -> Turns:
    turns = Turns()
    for arm, plane in planes.items():
        one_round(plane, pool, storm, "warm", WARM_UP_S)
        turns.put_ms[arm.name] = single_write_ms(plane)
        say(f"{arm.name}: a single Event takes {turns.put_ms[arm.name]:.1f} ms")
    for number in range(1, rounds + 1):
        for arm, plane in planes.items():
            round_ = one_round(plane, pool, storm, f"r{number}", seconds)
            turns.rounds.setdefault(arm.name, []).append(round_)
            say(f"round {number}, {arm.name}: {describe(round_)}")
    return turns


@contextmanager
def _planes(delay_ms: float, quota: int | None = None, arms: tuple[Arm, ...] = ARMS) -> Iterator[dict[Arm, Loopback]]:
    with ExitStack() as stack:
        planes = {}
        for number, arm in enumerate(arms):
            # Files in memory: this machine's disk would add an unknown delay.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm", ignore_cleanup_errors=True)))
            shape = arm.shape(number, round(delay_ms * 1000), quota)
            planes[arm] = plane = stack.enter_context(running(shape, folder, controllers=False))
            load.bind(plane.login(ADMIN.name), (NODES.name, RESEARCHER.name))
            with Api(plane.login(ADMIN.name)) as api:
                for name in _LEASES:
                    load.outcome(api, load.lease(name))
        yield planes


def single_write_ms(plane: Loopback, times: int = 20) -> float:
    """Return the median milliseconds of an Event written alone. It can't be less than the injected delay."""
    with Api(plane.login(ADMIN.name)) as api:
        seconds = []
        for call in islice(load.events("alone"), times):
            began = time.monotonic()
            load.outcome(api, call)
            seconds.append(time.monotonic() - began)
    return Timed(tuple(seconds), Counter()).percentile(0.5) * 1000


def one_round(plane: Loopback, pool: Executor, storm: Storm, tag: str, seconds: float) -> Round:
    """Make ordinary writes alone, then as many in a storm."""
    quiet, main_quiet, _ = _phase(plane, pool, None, f"{tag}-quiet", seconds)
    stormy, main_stormy, events_s = _phase(plane, pool, storm, f"{tag}-storm", seconds)
    return Round(quiet, stormy, main_quiet, main_stormy, events_s)


def _phase(
    plane: Loopback, pool: Executor, storm: Storm | None, tag: str, seconds: float
) -> tuple[Timed, float, float]:
    nodes, researcher = plane.login(NODES.name), plane.login(RESEARCHER.name)
    before = main_writes(plane)
    storms = [
        pool.submit(storming, nodes, storm, f"{tag}-{client}", seconds)
        for client in range(CLIENTS)
        if storm is not None
    ]
    calls = load.ordinary(tag, int(RATE * seconds), _LEASES)
    # In this process, because the others are niced.
    timed = load.at_rate(researcher, calls, RATE, ORDINARY_CONNECTIONS)
    written = sum(each.result() for each in storms)
    return timed, main_writes(plane) - before, written / seconds


def storming(login: Login, storm: Storm, tag: str, seconds: float) -> int:
    """Run one process's share of a storm. Return the number of Events written."""
    os.setpriority(os.PRIO_PROCESS, 0, load.NICENESS)
    if storm.events_s is None:
        return load.as_fast(login, load.events(tag), CONNECTIONS, seconds)["201"]
    rate = storm.events_s / CLIENTS
    return len(load.at_rate(login, list(islice(load.events(tag), int(rate * seconds))), rate, CONNECTIONS).seconds)


def main_writes(plane: Loopback) -> float:
    """Return the number of keys that etcd main has written since it started."""
    with urllib.request.urlopen(plane.metrics["main"], timeout=10) as answer:
        return prometheus.total(answer.read().decode(), "etcd_mvcc_put_total")


def failed_when_full(plane: Loopback) -> int:
    """Fill the etcd of Events to its quota, then count ordinary writes that fail. LoopbackError if it doesn't fill up."""
    deadline = time.monotonic() + FILL_S
    is_full = False
    for number in range(1000):
        with Api(plane.login(ADMIN.name)) as api:
            answers = [load.outcome(api, call)[0] for call in islice(load.events(f"fill-{number}", FILLER), 50)]
        is_full = any("space exceeded" in answer_ for answer_ in answers)
        if is_full or time.monotonic() > deadline:
            break
    if not is_full:
        raise LoopbackError(f"the etcd of Events is not full after {FILL_S:.0f} s; its last answer: {answers[-1]}")
    calls = load.ordinary("after", AFTER, _LEASES)
    return load.at_rate(plane.login(RESEARCHER.name), calls, RATE, ORDINARY_CONNECTIONS).refused


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Number of storms per control plane, in turns.")] = ROUNDS,
    seconds: Annotated[float, typer.Option(min=1, help="Duration of a storm.")] = STORM_S,
    storms: Annotated[
        str, typer.Option(help="Milliseconds per fsync, or milliseconds:Events per second, separated by commas.")
    ] = "2,20:150",
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure the effect of a storm of Events on other writes, with a separate etcd for Events and with a shared one."""
    chosen = [Storm.parsed(each) for each in storms.split(",")]
    alone.run(lambda say: measure(say, rounds, seconds, chosen), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, LoopbackError, FailedError)
