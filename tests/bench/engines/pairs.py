"""Faults of two processes: both replicas are lost at once, and an agent at a site is cut off from the engine that it writes to."""

from __future__ import annotations

import time

from tests.bench.engines.engine import Engine, wait
from tests.bench.engines.faults import Bench, Figures, Peak, alerts, is_alerting, is_fresh, steady
from tests.bench.engines.programs import SCRAPE_S
from tests.bench.engines.scrapes import longest_pause, missed

_UP = 'up{job="bench"}'


def replicas_lost(replicas: list[Engine], bench: Bench, full_s: float) -> Figures:
    """Run two engines with the same targets, kill both at once, and wait until either alerts."""
    for engine in replicas:
        engine.start()
    time.sleep(full_s)
    at = time.time()
    for engine in replicas:
        engine.stop(kill=True)
        alerts(bench.place, engine).unlink(missing_ok=True)
    began = time.monotonic()
    for engine in replicas:
        engine.start()
    alerting = wait(lambda: any(is_alerting(bench.place, engine) for engine in replicas), 300)
    both = wait(lambda: all(is_alerting(bench.place, engine) for engine in replicas), 300)
    time.sleep(max(0.0, 90 - (time.monotonic() - began)))
    around = (at - 60, at + 80)
    pauses = [longest_pause(engine.samples(_UP, *around), *around) for engine in replicas]
    for engine in replicas:
        engine.stop()
    return {
        "either alerts again, s": alerting if alerting is not None else 300,
        "both alert again, s after that": both if both is not None else 300,
        "pause of scrapes in the better one, s": min(pauses),
    }


def cut_off(agent: Engine, central: Engine, bench: Bench, seconds: float) -> Figures:
    """Stop the central engine, whose samples come from an agent, and start it again later."""
    central.start()
    agent.start()
    wait(lambda: is_fresh(central), 60)
    time.sleep(3 * SCRAPE_S)
    usual, began = steady(agent, 10), time.time()
    central.stop()
    with Peak(agent) as peak:
        time.sleep(seconds)
        central.start()
        ended = time.time()
        complete = wait(lambda: _missed(agent, central, began, ended) == 0, 180, 2)
    lost = _missed(agent, central, began, ended)
    size = agent.disk_bytes
    for engine in (agent, central):
        engine.stop()
    return {
        "complete again, s": complete if complete is not None else 180,
        "scrapes lost, ": lost,
        "agent's memory, of steady": peak.bytes / usual,
        "agent's disk, MB": size / 1e6,
    }


def _missed(agent: Engine, central: Engine, began: float, ended: float) -> float:
    ups = dict(central.samples(_UP, began, ended))
    ups["t0"] = [(at, 1.0) for at, _ in ups.get("t0", ())]
    return missed(ups, agent.count, SCRAPE_S, began, ended)
