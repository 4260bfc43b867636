"""``python -m tests.bench.planner``: costs and savings of the autoscaler's planner, compared with two other planners.

It plans one made-up hour of a cluster (`tests.bench.pending`, with its seed): about 31,000 pending pods, 14 types of hosts. It
measures CPU time instead of wall-clock time, because that depends less on the machine's other work.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from controllers.planner import Budget, Fate, Plan, Snapshot, plan
from tests.bench import alone, machine, pending
from tests.bench.figures import Figure, table
from tests.bench.packers import SPARE, Packed, autoscaler_of_2017, first_fit_decreasing

ROUNDS = 3
BUDGET_S = 9.0  # the solver checks for its end only now and then, and the heuristic runs first
ABOVE_AIM, EACH_AIM_US, EXACT_AIM_S = 0.5, 20.0, 10.0

T = TypeVar("T")


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Plan the same hour with each planner in turns. The exact plan, which has its own budget, is made once."""
    snapshot = pending.snapshot()
    cpu: dict[str, list[float]] = {"heuristic": [], "ffd": [], "2017": []}
    for number in range(1, rounds + 1):
        heuristic, spent = timed(lambda: plan(snapshot))
        cpu["heuristic"].append(spent)
        ffd, spent = timed(lambda: first_fit_decreasing(snapshot))
        cpu["ffd"].append(spent)
        old, spent = timed(lambda: autoscaler_of_2017(snapshot))
        cpu["2017"].append(spent)
        say(f"round {number}: " + ", ".join(f"{name} {seconds[-1]:.2f} s" for name, seconds in cpu.items()))
    from controllers.planner.verify import unproved

    exact, spent = timed(lambda: plan(snapshot, budget=Budget(BUDGET_S, time.process_time)))
    assert exact.certificate
    unchecked = unproved(exact.certificate)
    say(str(exact.certificate))
    say(f"checked in integer arithmetic: all but {len(unchecked)} of its {len(exact.certificate.most)} bins")
    return summary(snapshot, heuristic, exact, spent, {"ffd": ffd, "2017": old}, cpu)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of `work`, and its seconds of CPU."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def above(cost: int, bound: int) -> float:
    """Return by how many per cent a cost is above the bound."""
    return (cost / bound - 1) * 100


def summary(
    snapshot: Snapshot,
    heuristic: Plan,
    exact: Plan,
    exact_s: float,
    others: dict[str, Packed],
    cpu: dict[str, list[float]],
) -> list[Figure]:
    """Return the figures. Every cost is relative to the same bound, which the exact plan's certificate proves."""
    pods, bound = len(snapshot.pods), exact.bound or 0
    if not bound or any(verdict.fate not in (Fate.NEW, Fate.ROOM) for verdict in exact.verdicts.values()):
        raise ValueError("the made-up pods must all find room, otherwise the costs are of different pods")
    note = f"{pods} pods, {len(snapshot.pools)} types of hosts, seed {pending.SEED}; the bound is {bound / 1e6:.2f} $/h"
    figures = [
        Figure("plan, cost above the lower bound, exact", "%", (above(exact.weighed, bound),), ABOVE_AIM, note),
        Figure("plan, cost above the lower bound, heuristic", "%", (above(heuristic.weighed, bound),)),
    ]
    names = {"ffd": "first fit decreasing", "2017": "autoscaler of 2017"}
    for key, packed in others.items():
        note_ = f"{packed.unplaced} pods unplaced; ignores gangs and racks"
        name = f"plan, cost above the lower bound, {names[key]}"
        if packed.spare:
            spare = f"{name} with its {SPARE} spare hosts a type"
            figures.append(Figure(spare, "%", (above(packed.cost, bound),), None, note_))
            name += " without them"
        figures.append(Figure(name, "%", (above(packed.needed, bound),), None, note_))
    per_pod = tuple(spent / pods * 1e6 for spent in cpu["heuristic"])
    figures += [
        Figure("plan, CPU a pod, heuristic", "µs", per_pod, EACH_AIM_US, "20 µs are 50,000 pods a second"),
        Figure("plan, CPU, exact", "s", (exact_s,), EXACT_AIM_S, "the heuristic, the bound and the integer program"),
        *(Figure(f"plan, CPU, {names[key]}", "s", tuple(cpu[key])) for key in names),
    ]
    return figures


def main(
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of plans by each planner; the exact plan is made once.")
    ] = ROUNDS,
    as_json: alone.JsonOpt = False,
) -> None:
    """Plan a made-up hour of a cluster with the heuristic, exactly, and with two other planners."""
    host, load = machine.read(), machine.load()
    figures = measure(alone.say, rounds)
    if as_json:
        document = {
            "machine": host.to_json(),
            "load": {"before": load, "after": machine.load()},
            "figures": [figure.to_json() for figure in figures],
        }
        print(json.dumps(document, indent=2))
        return
    print(f"{host}; load {load:.1f} before, {machine.load():.1f} after")
    print(table(figures))


if __name__ == "__main__":
    typer.run(main)
