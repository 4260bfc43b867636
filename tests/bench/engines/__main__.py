"""Compare Prometheus with VictoriaMetrics by faults: `python -m tests.bench.engines`. Needs root, no lab, and two hours.

Both scrape the same targets at the same time, each onto a file system in memory. When their heads are full, one fault after
another is injected into one engine and then into the other, while the other one works on. So both have the same conditions,
also on a busy machine; only ratios of one run mean something.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import FailedError
from cluster.metrics.sizes import memory
from tests.bench import alone
from tests.bench.engines import disk, faults, pairs
from tests.bench.engines.engine import Commands, Engine, wait
from tests.bench.engines.faults import Bench, Figures
from tests.bench.engines.programs import ALERT, SCRAPE_S, prometheus, prometheus_agent, victoria, victoria_agent
from tests.bench.figures import Figure
from tests.ports import free_port
from tools import build

COUNT, SERIES = 100, 1000
FULL_S = 2700.0
"""180 samples a series: as many as three hours have, the longest time that a head of Prometheus spans, with a scrape a minute."""
ROUNDS = 3
_PART = 5
"""Replicas and agents have a fifth of the targets."""
_SIZE_MB = 2500
_CUT_S, _REPLICAS_S = 120.0, 300.0
_BETWEEN_S = 20
_AIMS = {"alerting again, s": 60.0, "either alerts again, s": 60.0, "memory, of steady": 1.2, "scrapes missed, ": 0.0}
PROGRAMS = ("prometheus", "victoria-metrics", "vmalert", "vmagent")

Fault = Callable[[Engine, Bench], Figures]
FAULTS: Mapping[str, tuple[Fault, int]] = {
    "killed with a full head": (faults.killed, ROUNDS),
    "50 times all series": (faults.asked, 2),
    "a million series": (faults.flooded, 1),
    "a target's clock": (faults.ahead, 1),
    "disk full": (faults.without_space, 1),
}
"""Fault -> how to inject it, and how often."""


@contextmanager
def targets(folder: Path) -> Iterator[int]:
    port = free_port()
    words = [sys.executable, "-m", "tests.bench.engines.targets", str(port), str(folder), str(COUNT), str(SERIES)]
    (folder / "down").write_text("0")
    with subprocess.Popen(words) as process:
        try:
            if wait(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/t/1").read(), 600) is None:
                raise FailedError("the targets do not answer", code="bench")
            yield port
        finally:
            process.terminate()


class Results:
    """Figures by fault, name and engine, in the order in which they came."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], list[float]] = {}

    def add(self, fault: str, engine: str, figures: Figures) -> None:
        alone.say(f"{fault}, {engine}: {figures}")
        for name, value in figures.items():
            self._values.setdefault((fault, name, engine), []).append(value)

    def figures(self) -> list[Figure]:
        return [
            Figure(
                f"{fault}: {name.partition(', ')[0]} [{engine}]",
                name.partition(", ")[2],
                tuple(values),
                _AIMS.get(name),
            )
            for (fault, name, engine), values in self._values.items()
        ]


def measure(paths: Mapping[str, Path], full_s: float) -> list[Figure]:
    """Run both engines through all faults."""
    made = {
        "prometheus": prometheus(paths["prometheus"]),
        "victoria": victoria(paths["victoria-metrics"], paths["vmalert"]),
    }
    results = Results()
    with tempfile.TemporaryDirectory(prefix="menagerie-engines-") as folder, targets(Path(folder)) as port:
        place = Path(folder)
        _alone(place, port, made, full_s, results)
        for name, commands in made.items():
            results.add("both replicas killed", name, _replicas(place, port, name, commands))
        agents = {
            "prometheus": (prometheus_agent, paths["prometheus"]),
            "victoria": (victoria_agent, paths["vmagent"]),
        }
        for name, (of, program) in agents.items():
            central = _engine(place, port, f"{name}-central", 0, made[name])
            agent = _engine(place, port, f"{name}-agent", COUNT // _PART, of(program, central))
            results.add("agent cut off", name, pairs.cut_off(agent, central, Bench(place, 0, 0), _CUT_S))
    return results.figures()


def _engine(place: Path, port: int, name: str, count: int, commands: Commands) -> Engine:
    return Engine(name, place / name, port, count, commands, int(memory(max(count, 20) * SERIES) * 0.9))


def _alone(place: Path, port: int, made: Mapping[str, Commands], full_s: float, results: Results) -> None:
    """Run both engines at the same time; fill their heads, then inject each fault into one after the other."""
    engines = [_engine(place, port, name, COUNT, commands) for name, commands in made.items()]
    with ExitStack() as stack:
        for engine in engines:
            stack.enter_context(disk.limited(engine.disk, _SIZE_MB))
            stack.callback(engine.stop, kill=True)
        benches = {engine.name: _fill(engine, place) for engine in engines}
        time.sleep(full_s)
        for engine in engines:
            usual = faults.steady(engine, 30)
            benches[engine.name] = Bench(place, usual, memory(COUNT * SERIES))
            results.add("steady", engine.name, _usual(engine, usual))
        for fault, (inject, rounds) in FAULTS.items():
            for _ in range(rounds):
                for engine in engines:
                    results.add(fault, engine.name, inject(engine, benches[engine.name]))
                    time.sleep(_BETWEEN_S)


def _fill(engine: Engine, place: Path) -> Bench:
    engine.start()
    if wait(lambda: faults.is_alerting(place, engine), 600) is None:
        log = Path(f"{engine.folder}.log").read_text(errors="replace")[-2000:]
        raise FailedError(f"{engine.name} has not sent {ALERT} within 10 minutes of its start: {log}", code="bench")
    return Bench(place, 1, 1)


def _usual(engine: Engine, usual: float) -> Figures:
    samples = engine.value("sum(count_over_time(scrape_samples_scraped[1d]))") * SERIES
    return {
        "samples, million": samples / 1e6,
        "samples a series, ": samples / SERIES / COUNT,
        "memory, MB": usual / 1e6,
        "memory a series, bytes": usual / COUNT / SERIES,
        "CPU of a million samples, s": engine.cpu_s() / samples * 1e6,
        "disk of a sample, bytes": engine.disk_bytes / samples,
        "scrapes missed, ": faults.lacking(engine, time.time() - 300, time.time() - 2 * SCRAPE_S),
    }


def _replicas(place: Path, port: int, name: str, commands: Commands) -> Figures:
    pair = [_engine(place, port, f"{name}-{letter}", COUNT // _PART, commands) for letter in "ab"]
    return pairs.replicas_lost(pair, Bench(place, 1, 1), _REPLICAS_S)


def main(
    full_s: Annotated[float, typer.Option(help="Seconds of scrapes before the first fault.")] = FULL_S,
    as_json: alone.JsonOpt = False,
) -> None:
    """Compare two engines by the faults that they must survive."""
    disk.enter_own_mounts("tests.bench.engines")
    paths = build.ensure(PROGRAMS)
    alone.run(lambda say: measure(paths, full_s), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, FailedError)
