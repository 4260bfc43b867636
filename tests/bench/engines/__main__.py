"""Compare engines of metrics by faults: `python -m tests.bench.engines`. As root, for a file system of limited size.

Both get the same targets, one after the other, on a file system in memory. The figures are printed as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tests.bench import alone
from tests.bench.engines import faults
from tests.bench.engines.engine import (
    Commands,
    Engine,
    prometheus,
    prometheus_agent,
    victoria,
    victoria_agent,
    wait,
)
from tests.ports import free_port

COUNT, SERIES = 100, 1000
SIZE = "1500m"
CUT_S = 120


@contextmanager
def targets(folder: Path) -> Iterator[int]:
    port = free_port()
    words = [sys.executable, "-m", "tests.bench.engines.targets", str(port), str(folder), str(COUNT), str(SERIES)]
    with subprocess.Popen(words) as process:
        try:
            yield port
        finally:
            process.terminate()


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """Mount a file system of limited size."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def cpu_s(engine: Engine) -> float:
    """Return the CPU seconds of its processes (proc(5), stat: utime and stime in ticks of 10 ms)."""
    stats = [Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split() for each in engine.running]
    return sum(int(each[11]) + int(each[12]) for each in stats) / 100


def measure(engine: Engine, folder: Path, full_s: float) -> dict[str, object]:
    """Run an engine until its head is full, then through all faults."""
    (folder / "down").write_text("0")
    (folder / "alerts").unlink(missing_ok=True)
    began = time.monotonic()
    engine.start()
    results: dict[str, object] = {"first alert, s": wait(lambda: faults.is_alerting(folder), 120)}
    time.sleep(full_s)
    samples = engine.value("sum(count_over_time(scrape_samples_scraped[1d]))") * SERIES
    usual = faults.steady(engine, 30)
    results |= {
        "samples": samples,
        "steady memory, MB": usual / 1e6,
        "CPU, s per million samples": cpu_s(engine) / samples * 1e6,
        "disk, MB": sum(file.stat().st_size for file in engine.data.rglob("*") if file.is_file()) / 1e6,
        "minutes": (time.monotonic() - began) / 60,
    }
    for name, run in faults.MEASURES.items():
        alone.say(f"{engine.name}: {name}")
        results[name] = run(engine, folder, usual)
        alone.say(f"  {results[name]}")
        time.sleep(15)
    return results


def main(
    prometheus_program: Annotated[Path, typer.Option("--prometheus")],
    database: Annotated[Path, typer.Option("--victoria-metrics")],
    evaluator: Annotated[Path, typer.Option("--vmalert")],
    forwarder: Annotated[Path, typer.Option("--vmagent")],
    full_s: Annotated[
        float, typer.Option(help="Seconds of scrapes, 100,000 series a second, before the first fault.")
    ] = 240,
) -> None:
    """Compare two engines by the faults that they must survive."""
    made = {
        "prometheus": prometheus(prometheus_program.resolve()),
        "victoria": victoria(database.resolve(), evaluator.resolve()),
    }
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as place, targets(Path(place)) as port:
        for name, commands in made.items():
            folder = Path(place) / name
            with disk(folder):
                engine = Engine(name, folder, port, COUNT, commands)
                try:
                    results[name] = measure(engine, Path(place), full_s)
                finally:
                    engine.stop(kill=True)
                    alone.say((folder / "log").read_text(errors="replace")[-3000:])
        for name, result in _cut_off(Path(place), port, made, prometheus_program.resolve(), forwarder.resolve()):
            results[name]["site cut off"] = result
    print(json.dumps(results, indent=2))


def _cut_off(
    place: Path, port: int, made: Mapping[str, Commands], prometheus_program: Path, forwarder: Path
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield, for each engine, what an agent keeps while the engine is away."""
    agents = {"prometheus": (prometheus_agent, prometheus_program), "victoria": (victoria_agent, forwarder)}
    (place / "down").write_text("")
    for name, commands in made.items():
        with disk(place / f"{name}-cut"):
            central = Engine("central", place / f"{name}-cut/central", port, 0, commands)
            of, program = agents[name]
            agent = Engine("agent", place / f"{name}-cut/agent", port, COUNT // 5, of(program, central))
            try:
                yield name, faults.cut_off(agent, central, CUT_S)
            finally:
                agent.stop(kill=True)
                central.stop(kill=True)


if __name__ == "__main__":
    alone.command(main)
