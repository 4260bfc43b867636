"""``python -m tests.bench``: measure bring-ups of the lab, alternating between the toolkit and by hand, and the cost of plans.

Brings the cluster `lab` up and down several times on this machine, and leaves nothing behind.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from cluster.errors import TimedOutError
from cluster.load import find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from operations.stack import has_stack
from sandbox.lab import clean, preflight, state
from sandbox.lab.errors import LabError
from sandbox.lab.prepare import lab_spec, prepare
from tests.bench import (
    alone,
    bare,
    counters,
    growth,
    inventory,
    ledger,
    machine,
    neighbours,
    pages,
    planner,
    planning,
    recovery,
    scale,
    scheduling,
    storm,
    toolkit,
    traffic,
    validation,
    workers,
)
from tests.bench.figures import Figure, ratios, table
from tests.bench.group import CommandError
from tests.bench.loopback import LoopbackError

CLUSTER = "lab"
RATIO_AIM = 1.3
NOTHING_AIM_S, AGAIN_AIM = 150.0, 0.15
TASKS_AIM, MEMORY_AIM_MB = 60.0, 300.0
BUSY_LOAD = 0.5  # load per core from which other work makes times doubtful


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Pairs of bring-ups: with the toolkit, then by hand.")] = 2,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure bring-ups of the lab with the toolkit and by hand, in turns. The lab must be down when this starts."""
    cluster = load_cluster(find_cluster(CLUSTER, ROOT))
    _refuse_existing_lab(cluster)
    here, load_before = machine.read(), machine.load()
    alone.say(f"{here}; load {load_before:.1f}")
    if load_before > BUSY_LOAD * here.cores:
        alone.say("other work runs on this machine: the times below are longer than the toolkit needs")
    figures = [
        *_measure(cluster, rounds),
        *traffic.measure(alone.say),
        *planning.measure(planning.ROUNDS, alone.say),
        *validation.measure(alone.say),
        *inventory.measure(alone.say),
        *workers.measure(alone.say),
        *recovery.measure(alone.say),
        *growth.measure(alone.say),
        *planner.measure(alone.say),
        *ledger.measure(alone.say),
        *pages.measure(alone.say),
        *_neighbours(),
        *counters.measure(alone.say),
        *_control_planes(),
    ]
    loads = {"before": load_before, "after": machine.load()}
    if as_json:
        document = {
            "machine": here.to_json(),
            "load": loads,
            "rounds": rounds,
            "figures": [f.to_json() for f in figures],
        }
        print(json.dumps(document, indent=2))
        return
    print(f"\n{here}; load {loads['before']:.1f} before, {loads['after']:.1f} after (with this run in it)")
    print(f"{rounds} rounds in turns: with the toolkit, by hand\n\n{table(figures)}\n")
    for number, figure in enumerate((figure for figure in figures if figure.note), 1):
        print(f"{number}. {figure.name}: {figure.note}")


def _measure(cluster: Cluster, rounds: int) -> list[Figure]:
    prepare(alone.say, kubernetes=cluster.spec.kubernetes.version)
    checks = toolkit.check()
    ours, theirs = [], []
    for number in range(1, rounds + 1):
        ours.append(toolkit.measure(cluster))
        alone.say(
            f"round {number}: menagerie up {ours[-1].seconds:.1f} s, nodes Ready {ours[-1].booted_to_ready_s:.1f} s after boot"
        )
        theirs.append(bare.measure(cluster))
        alone.say(
            f"round {number}: by hand {theirs[-1].seconds:.1f} s, nodes Ready {theirs[-1].booted_to_ready_s:.1f} s after boot"
        )
    peak = toolkit.peak_memory(cluster)
    return summary(ours, theirs, peak, checks, len(cluster.host_list()))


def _neighbours() -> list[Figure]:
    """If the kernel's tables can't be changed here, the other figures are still worth printing."""
    try:
        return neighbours.measure(alone.say)
    except neighbours.NeighboursError as error:
        alone.say(f"neighbour tables were not measured: {error}")
        return []


def _control_planes() -> list[Figure]:
    """These come last and take long. If one fails, the earlier figures are still worth printing."""
    figures: list[Figure] = []
    try:
        for measure in (storm.measure, scale.measure, scheduling.measure):
            figures += measure(alone.say)
    except (LoopbackError, OSError) as error:
        alone.say(f"the remaining control planes on loopback were not measured: {error}")
    return figures


def summary(
    ours: list[toolkit.Run], theirs: list[bare.Run], peak: Mapping[str, int], checks: tuple[float, ...], workers: int
) -> list[Figure]:
    """Return the figures of a whole run. Ratios compare the two bring-ups of one round."""
    return [
        *_against_by_hand(ours, theirs),
        *_again(ours),
        *_costs(ours, peak, workers),
        Figure("menagerie check", "s", checks),
        *_parts("step, toolkit", [run.steps for run in ours]),
        *_parts("step, by hand", [run.steps for run in theirs]),
        *_parts("CPU until Ready, toolkit", [run.ready_cpu_s for run in ours]),
        *_parts("CPU until Ready, by hand", [run.ready_cpu_s for run in theirs]),
    ]


def _against_by_hand(ours: list[toolkit.Run], theirs: list[bare.Run]) -> list[Figure]:
    compared = [
        (
            "hosts booted to nodes Ready",
            lambda run: run.booted_to_ready_s,
            RATIO_AIM,
            "from the last host's basic.target until the side that brings the cluster up sees all nodes Ready",
        ),
        (
            "first host started to nodes Ready",
            lambda run: run.started_to_ready_s,
            RATIO_AIM,
            "the same, from the start of the first host's systemd, so that work done while others boot counts too",
        ),
        (
            "CPU until nodes Ready",
            lambda run: sum(run.ready_cpu_s.values()),
            None,
            "of everything, from scratch; commands that the bench runs inside hosts by hand count as its controller's",
        ),
    ]
    figures = []
    for name, read, aim, note in compared:
        our, their = tuple(map(read, ours)), tuple(map(read, theirs))
        figures += [Figure(f"{name}, toolkit", "s", our, None, note), Figure(f"{name}, by hand", "s", their)]
        figures.append(Figure(f"{name}, ratio", "", ratios(our, their), aim))
    return figures


def _again(ours: list[toolkit.Run]) -> list[Figure]:
    first, again = tuple(run.seconds for run in ours), tuple(run.again_s for run in ours)
    return [
        Figure("up from nothing, artefacts cached", "s", first, NOTHING_AIM_S),
        Figure("second up", "s", again),
        Figure("second up, ratio to the first", "", ratios(again, first), AGAIN_AIM),
        Figure("second up, changes", "", tuple(float(run.changed) for run in ours), 0.0),
    ]


def _costs(ours: list[toolkit.Run], peak: Mapping[str, int], workers: int) -> list[Figure]:
    cpu = "menagerie and all its children, counted by a control group without hosts and daemons"
    largest = sorted(peak.items(), key=lambda item: -item[1])[:6]
    memory = "sum of PSS over the same processes, in a separate bring-up that is not timed; at the peak " + ", ".join(
        f"{name} {size / 1e6:.0f}" for name, size in largest
    )
    return [
        Figure("Ansible tasks per worker", "", tuple(float(run.tasks) for run in ours), TASKS_AIM),
        Figure("controller CPU per worker, up", "s", tuple(run.cpu_s / workers for run in ours), None, cpu),
        Figure("controller CPU per worker, second up", "s", tuple(run.again_cpu_s / workers for run in ours)),
        Figure("peak memory of the toolkit", "MB", (sum(peak.values()) / 1e6,), MEMORY_AIM_MB, memory),
    ]


def _parts(what: str, runs: Sequence[Mapping[str, float]]) -> list[Figure]:
    return [Figure(f"{what}: {name.replace('_', ' ')}", "s", tuple(run[name] for run in runs)) for name in runs[0]]


def _refuse_existing_lab(cluster: Cluster) -> None:
    """Exit if there is a lab: the bench destroys labs, but never one that somebody uses."""
    preflight.check(lab_spec(cluster))
    if has_stack(cluster) or state.lab_id() in clean.labs():
        sys.exit(
            f"error: the cluster {cluster.name} exists, and the bench starts from scratch: run `make lab-down` first"
        )


if __name__ == "__main__":
    alone.command(main, LabError, CommandError, TimedOutError, bare.BareError, workers.BenchError)
