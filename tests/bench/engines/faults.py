"""The faults of an engine that runs, and what they cost: seconds, memory, scrapes that lack.

Each function returns figures by name; the unit of a figure is what follows the comma in its name.
"""

from __future__ import annotations

import threading
import time
import urllib.error
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

from tests.bench.engines import disk
from tests.bench.engines.engine import Engine, wait
from tests.bench.engines.programs import ALERT, SCRAPE_S
from tests.bench.engines.scrapes import longest_pause, missed

Figures = dict[str, float]
EVERYTHING = '{__name__=~".+"}'
CALLERS = 50
_UP = 'up{job="bench"}'
_DOWN, _FLOOD, _AHEAD = 0, 1, 2
"""Numbers of targets: one always fails, so that there is an alert; one gets a million series; one's clock is wrong."""
_AROUND_S = 2 * SCRAPE_S


class Bench(NamedTuple):
    """What faults need to know. place: the folder of the targets. usual: bytes of memory before the first fault."""

    place: Path
    usual: float
    budget: int


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

    def figures(self, bench: Bench) -> Figures:
        return {"memory, of steady": self.bytes / bench.usual, "memory, of what is planned": self.bytes / bench.budget}


def steady(engine: Engine, seconds: float) -> float:
    """Return the mean of its memory over some seconds, in bytes."""
    readings = []
    ended = time.monotonic() + seconds
    while time.monotonic() < ended:
        readings.append(engine.memory())
        time.sleep(0.5)
    return sum(readings) / len(readings)


def alerts(place: Path, engine: Engine) -> Path:
    return place / f"alerts-{engine.name}"


def is_alerting(place: Path, engine: Engine) -> bool:
    file = alerts(place, engine)
    return file.exists() and any(ALERT in line for line in file.read_text().splitlines())


def lacking(engine: Engine, began: float, ended: float, *but: int) -> float:
    """Return the scrapes that lack between two times, a little around them included. but: targets whose scrapes fail anyway."""
    first, last = began - _AROUND_S, ended + _AROUND_S
    ups = dict(engine.samples(_UP, first, last))
    for number in (_DOWN, *but):
        ups[f"t{number}"] = [(first + offset, 1.0) for offset in range(0, int(last - first) + 1, SCRAPE_S)]
    return missed(ups, engine.count, SCRAPE_S, first, last)


def pause(engine: Engine, began: float, ended: float) -> float:
    """Return the longest time in seconds without an evaluation of rules."""
    return longest_pause(engine.samples(f'ALERTS{{alertname="{ALERT}"}}', began, ended), began, ended)


def killed(engine: Engine, bench: Bench) -> Figures:
    """Kill it with a full head, start it again, and wait until it alerts."""
    at = time.time()
    before = len(_times(engine, at))
    engine.stop(kill=True)
    alerts(bench.place, engine).unlink(missing_ok=True)
    with Peak(engine) as peak:
        began = time.monotonic()
        engine.start()
        alerting = wait(lambda: is_alerting(bench.place, engine), 300)
        cpu = engine.cpu_s()
        time.sleep(max(0.0, 90 - (time.monotonic() - began)))
    after, around = _times(engine, at), (at - 60, at + 80)
    return {
        "alerting again, s": _or(alerting, 300),
        "CPU until then, s": cpu,
        **peak.figures(bench),
        "samples of the last minute lost, ": before - len(after),
        "pause of scrapes, s": longest_pause(engine.samples(_UP, *around), *around),
    }


def _or(seconds: float | None, most: float) -> float:
    """Return the seconds, or the longest time that was waited."""
    return most if seconds is None else seconds


def _times(engine: Engine, at: float) -> list[float]:
    return [when for values in engine.samples(_UP, at - 60, at).values() for when, _ in values]


def asked(engine: Engine, bench: Bench) -> Figures:
    """Ask for all series 50 times at once, without a range."""

    def ask(_: int) -> tuple[str, float]:
        began = time.monotonic()
        try:
            engine.get("/api/v1/series", {"match[]": EVERYTHING}, 60)
            code = "answered"
        except urllib.error.HTTPError as error:
            code = "refused" if error.code in (422, 429, 503) else "failed"
        except (OSError, ValueError):
            code = "failed"
        return code, time.monotonic() - began

    began, before = time.time(), engine.restarts
    with Peak(engine) as peak, ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(ask, range(CALLERS)))
        ended = time.time()
        time.sleep(3 * SCRAPE_S)
    codes = Counter(code for code, _ in answers)
    return {
        **{f"{code}, of {CALLERS}": codes[code] for code in ("answered", "refused", "failed")},
        "longest answer, s": max(seconds for _, seconds in answers),
        **peak.figures(bench),
        "restarts, ": engine.restarts - before,
        "scrapes missed, ": lacking(engine, began, ended),
        "pause of rules, s": pause(engine, began - _AROUND_S, ended + _AROUND_S),
    }


def flooded(engine: Engine, bench: Bench) -> Figures:
    """Let a target have a million series for a minute. Other engines scrape it, too."""
    count = f'count({{__name__="bench_bytes_total",target="t{_FLOOD}"}})'
    others = f'count({{__name__="bench_bytes_total",target!="t{_FLOOD}"}})'
    before, restarts = engine.value(others), engine.restarts
    (bench.place / "flood").write_text(str(_FLOOD))
    began = time.time()
    with Peak(engine) as peak:
        time.sleep(60)
        refused = engine.value(f'up{{target="t{_FLOOD}"}}') == 0 and engine.value(count) <= SCRAPE_S * 1000
        alerted = engine.value(f'count(ALERTS{{alertname="{ALERT}",target="t{_FLOOD}"}})') > 0
        after = engine.value(others)
    (bench.place / "flood").unlink()
    ended = time.time()
    recovered = wait(lambda: engine.value(f'up{{target="t{_FLOOD}"}}') == 1, 60)
    time.sleep(_AROUND_S)
    return {
        "refused, ": float(refused),
        "alerted, ": float(alerted),
        "series of others lost, ": before - after,
        **peak.figures(bench),
        "restarts, ": engine.restarts - restarts,
        "scrapes of others missed, ": lacking(engine, began, ended, _FLOOD),
        "scraped again, s": _or(recovered, 60),
    }


def ahead(engine: Engine, bench: Bench) -> Figures:
    """Let the clock of a target be five minutes ahead for a minute. The engine's own clock cannot be set for it alone."""
    one = f'count(bench_bytes_total{{target="t{_AHEAD}"}})'
    (bench.place / "ahead").write_text(str(_AHEAD))
    began = time.time()
    time.sleep(60)
    (bench.place / "ahead").unlink()
    ended = time.time()
    taken = wait(lambda: _newest(engine, began, ended) > ended, 60)
    time.sleep(_AROUND_S)
    return {
        "samples of it again, s": _or(taken, 60),
        "its series, ": engine.value(one),
        "scrapes of others missed, ": lacking(engine, began, ended, _AHEAD),
    }


def _newest(engine: Engine, began: float, ended: float) -> float:
    """Return the time of the newest sample of the target that is not ahead of now, or `began`."""
    selector = f'bench_bytes_total{{target="t{_AHEAD}",device="device-0"}}'
    values = engine.samples(selector, began, max(time.time(), ended + 1))
    return max((at for series in values.values() for at, _ in series), default=began)


def without_space(engine: Engine, bench: Bench) -> Figures:
    """Fill its disk for a minute. An engine that does not recover within a minute is stopped and started."""
    at, restarts = time.time() - 30, engine.restarts
    before = len(_times(engine, at))
    began = time.time()
    with disk.full(engine.disk):
        time.sleep(60)
        answered = wait(lambda: engine.value("count(up)", at) > 0, 5) is not None
    ended = time.time()
    back = wait(lambda: is_fresh(engine), 60)
    by_hand = back is None
    if by_hand:
        engine.stop()
        engine.start()
        back = wait(lambda: is_fresh(engine), 120)
    time.sleep(_AROUND_S)
    return {
        "answered while full, ": float(answered),
        "restarts, ": engine.restarts - restarts,
        "restarts by hand, ": float(by_hand),
        "takes samples again, s": _or(back, 120),
        "scrapes missed, of those while full": lacking(engine, began, ended) / (engine.count * 60 / SCRAPE_S),
        "samples of before lost, ": before - len(_times(engine, at)),
    }


def is_fresh(engine: Engine) -> bool:
    return time.time() - engine.value(f"max(timestamp({_UP}))") < 2 * SCRAPE_S
