"""The faults of an engine, and what they cost: seconds, bytes, scrapes that lack."""

from __future__ import annotations

import subprocess
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.bench.engines.engine import ALERT, Engine, wait

EVERYTHING = '{__name__=~".+"}'
CALLERS = 50


class Peak:
    """The most anonymous memory that an engine has while a block runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._over, self.bytes = engine, threading.Event(), 0
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(0.1):
            self.bytes = max(self.bytes, self._engine.memory())


def steady(engine: Engine, seconds: float) -> float:
    """Return the mean of its memory over some seconds, in bytes."""
    readings = []
    ended = time.monotonic() + seconds
    while time.monotonic() < ended:
        readings.append(engine.memory())
        time.sleep(0.5)
    return sum(readings) / len(readings)


def is_alerting(folder: Path) -> bool:
    file = folder / "alerts"
    return file.exists() and any(ALERT in line for line in file.read_text().splitlines())


def killed(engine: Engine, folder: Path, usual: float) -> dict[str, object]:
    """Kill it with a full head, start it again, and wait until it alerts."""
    engine.stop(kill=True)
    (folder / "alerts").unlink(missing_ok=True)
    with Peak(engine) as peak:
        began = time.monotonic()
        engine.start()
        alerting = wait(lambda: is_alerting(folder), 300)
        time.sleep(max(0.0, 60 - (time.monotonic() - began)))
    return {"alerting again, s": alerting, "memory, of steady": peak.bytes / usual}


def asked(engine: Engine, usual: float) -> dict[str, object]:
    """Ask for all series 50 times at once, without a range."""
    codes: Counter[str] = Counter()

    def ask(_: int) -> tuple[str, float]:
        began = time.monotonic()
        try:
            engine.get("/api/v1/series", {"match[]": EVERYTHING}, 60)
            code = "200"
        except urllib.error.HTTPError as error:
            code = str(error.code)
        except (TimeoutError, OSError):
            code = "no answer"
        return code, time.monotonic() - began

    began = time.time()
    with Peak(engine) as peak, ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(ask, range(CALLERS)))
        ended = time.time()
    codes.update(code for code, _ in answers)
    time.sleep(10)
    return {
        "answers": dict(codes),
        "longest answer, s": max(seconds for _, seconds in answers),
        "memory, of steady": peak.bytes / usual,
        "still runs": engine.is_running(),
        "scrapes missed": engine.missed(began, max(ended, began + 10), 1),
    }


def flooded(engine: Engine, folder: Path, usual: float) -> dict[str, object]:
    """Let a target have a million series for half a minute."""
    count = 'count({__name__="bench_bytes_total"})'
    before = engine.value(count)
    (folder / "flood").write_text("1")
    began = time.time()
    with Peak(engine) as peak:
        time.sleep(40)
        refused = engine.value('up{target="t1"}') == 0
        alerted = engine.value(f'count(ALERTS{{alertname="{ALERT}",target="t1"}})') > 0
        after, ended = engine.value(count), time.time()
    (folder / "flood").unlink()
    recovered = wait(lambda: engine.value('up{target="t1"}') == 1, 60)
    return {
        "refused": refused,
        "series before, then": (before, after),
        "alert": alerted,
        "memory, of steady": peak.bytes / usual,
        "scrapes of others missed": engine.missed(began, ended, 2),
        "normal again, s": recovered,
    }


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the file system of a folder."""
    filler = folder / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=1M"], check=False, capture_output=True)
    try:
        yield
    finally:
        filler.unlink()


def without_space(engine: Engine, folder: Path) -> dict[str, object]:
    """Fill its disk for a minute."""
    at = time.time() - 30
    before = engine.value("sum(count_over_time(up[60s]))", at)
    began = time.time()
    with full(engine.folder):
        time.sleep(60)
        runs = engine.is_running()
        answers = wait(lambda: engine.value("count(up)", at), 5) is not None
    ended = time.time()
    back = wait(lambda: _is_fresh(engine), 60)
    restarted = False
    if back is None:
        restarted = True
        engine.stop()
        engine.start()
        back = wait(lambda: _is_fresh(engine), 120)
    return {
        "still ran": runs,
        "answered": answers,
        "needed a restart": restarted,
        "takes samples again, s": back,
        "scrapes missed in the minute": engine.missed(began, ended, 1),
        "samples from before, then": (before, engine.value("sum(count_over_time(up[60s]))", at)),
    }


def _is_fresh(engine: Engine) -> bool:
    return time.time() - engine.value("max(timestamp(up))") < 5


def cut_off(agent: Engine, central: Engine, seconds: float) -> dict[str, object]:
    """Stop the central engine, whose samples come from an agent, and start it again later."""
    central.start()
    agent.start()
    wait(lambda: _is_fresh(central), 60)
    time.sleep(30)
    usual, began = steady(agent, 10), time.time()
    central.stop()
    with Peak(agent) as peak:
        time.sleep(seconds)
        central.start()
        ended = time.time()
        wait(lambda: _is_fresh(central), 60)
        complete = wait(lambda: _missed(agent, central, began, ended) <= 0, 180, 1)
    return {
        "cut off, s": ended - began,
        "complete again, s": complete,
        "scrapes missed": _missed(agent, central, began, ended),
        "agent's memory, MB": (usual / 1e6, peak.bytes / 1e6),
        "agent's disk, MB": sum(file.stat().st_size for file in agent.data.rglob("*") if file.is_file()) / 1e6,
    }


def _missed(agent: Engine, central: Engine, began: float, ended: float) -> float:
    seconds = int(ended - began)
    return agent.count * seconds - central.value(f"sum(count_over_time(up[{seconds}s]))", ended)


MEASURES: dict[str, Callable[[Engine, Path, float], dict[str, object]]] = {
    "killed with a full head": killed,
    "50 times all series": lambda engine, _, usual: asked(engine, usual),
    "a million series": flooded,
    "disk full": lambda engine, folder, _: without_space(engine, folder),
}
