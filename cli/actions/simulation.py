"""`autoscaler simulate`: a trace in simulated time. It asks no cluster and no cloud, so it loads none of their clients."""

from __future__ import annotations

from pathlib import Path

from cli.views import autoscaler as view
from cluster.spec import Cluster
from controllers.autoscaler.settings import settings_of
from controllers.autoscaler.simulate import run as simulation
from controllers.autoscaler.simulate.trace import lines, read
from operations.repair.look import limits_of


def simulate(cluster: Cluster, trace: Path, seed: int, hours: float | None, *, as_json: bool) -> None:
    """Run a trace with and without scale-in, and print both. Errors: raises RefusedError if the trace is invalid."""
    arrivals = read(lines(trace), trace.name)
    setting = simulation.setting_of(cluster, settings_of(cluster), limits_of(cluster))
    with view.progress(len(arrivals), quiet=as_json) as watch:
        outcome = simulation.simulate(setting, arrivals, seed, watch("with scale-in"), most_hours=hours)
        without = simulation.without_scale_in(setting)
        unscaled = simulation.simulate(without, arrivals, seed, watch("without scale-in"), hours=outcome.hours)
    notes = [supply.note for supply in setting.supplies.values() if supply.note]
    view.simulated(cluster, outcome, unscaled, notes, as_json=as_json)
