"""``python -m tests.bench.planning``: CPU time per additional resource of a plan, by Pulumi on three clouds and by terraform.

It measures CPU time instead of wall-clock time, because that depends less on the machine's other work. Each figure is the
difference of two plans, so the cost of starting cancels out. The simulated cloud runs in another process and is not counted.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import FailedError
from cluster.project import ROOT
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from tests.bench import alone, machine
from tests.bench.figures import Figure, ratios, table
from tests.bench.group import CommandError, Group
from tools import build

FEW, MANY = 10, 110
AIM_MS = 5.0
CLOUDS = ("azure", "aws", "gcp")
TERRAFORM = "terraform"
ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """A planner: a cloud's SDK with or without `stacks.lean`, or terraform."""

    name: str
    leanly: bool = False


CASES = (*(Case(cloud, leanly) for cloud in CLOUDS for leanly in (False, True)), Case(TERRAFORM))

Costs = Mapping[Case, Sequence[float]]
"""Case -> ms of CPU per resource, a value per round."""


def a_resource_ms(few_s: float, many_s: float) -> float:
    """Return the milliseconds per additional resource, from the seconds of a plan of FEW and of one of MANY."""
    return (many_s - few_s) / (MANY - FEW) * 1000


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Plan everything `rounds` times in turns."""
    programs = build.ensure(["pulumi", TERRAFORM], lambda event: say(str(event)))
    costs: dict[Case, list[float]] = {case: [] for case in CASES}
    with _planner(programs[TERRAFORM]) as cpu_s:
        for case in CASES:
            cpu_s(case, FEW)  # compiles modules, creates the stack's folder
        for number in range(1, rounds + 1):
            for case, cost in costs.items():
                cost.append(a_resource_ms(cpu_s(case, FEW), cpu_s(case, MANY)))
            say(f"round {number}: " + ", ".join(f"{name(case)} {cost[-1]:.2f} ms" for case, cost in costs.items()))
    return summary(costs)


def name(case: Case) -> str:
    """Return a case's name in the figures."""
    if case.name == TERRAFORM:
        return "terraform plan"
    return f"{case.name}, {'lean' if case.leanly else 'plain'}"


def summary(costs: Costs) -> list[Figure]:
    """Return the figures. Ratios compare the plans of one round."""
    what = "CPU a planned resource"
    note = f"of engine and program, between {FEW} and {MANY} of a kind: addresses of etcd members; of terraform_data"
    figures = []
    for cloud in CLOUDS:
        plain, lean = costs[Case(cloud)], costs[Case(cloud, leanly=True)]
        figures += [
            Figure(f"{what}, {name(Case(cloud))}", "ms", tuple(plain), None, note),
            Figure(f"{what}, {name(Case(cloud, leanly=True))}", "ms", tuple(lean), AIM_MS),
            Figure(f"{what}, {cloud}, lean ÷ plain", "", ratios(lean, plain)),
            Figure(f"{what}, {cloud}, lean ÷ terraform", "", ratios(lean, costs[Case(TERRAFORM)])),
        ]
    return [*figures, Figure(f"{what}, {name(Case(TERRAFORM))}", "ms", tuple(costs[Case(TERRAFORM)]))]


@contextmanager
def _planner(terraform: Path) -> Iterator[Callable[[Case, int], float]]:
    """Provide a function that returns the CPU seconds of a case's plan of `count` resources."""
    with tempfile.TemporaryDirectory() as path, Group() as group, simulated_clouds(World()) as environment:
        folder = Path(path)
        configurations = {
            count: _terraform_folder(terraform, folder / f"{TERRAFORM}-{count}", count, group) for count in (FEW, MANY)
        }
        python_env = {**environment, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}

        def cpu_s(case: Case, count: int) -> float:
            if case.name == TERRAFORM:
                return group.run(_terraform(terraform, configurations[count], "plan")).cpu_s
            stack = folder / name(case).replace(", ", "-")
            arguments = [case.name, str(count), str(stack), *(["--lean"] if case.leanly else [])]
            return group.run(_in(ROOT, python_env, [sys.executable, "-m", "tests.bench.plan", *arguments])).cpu_s

        yield cpu_s


def _terraform_folder(terraform: Path, folder: Path, count: int, group: Group) -> Path:
    """Create a configuration of `count` resources of terraform's built-in kind, ready to be planned."""
    resources = {f"ape_{number}": {"input": {"address": f"10.44.0.{number}"}} for number in range(count)}
    folder.mkdir()
    (folder / "main.tf.json").write_text(json.dumps({"resource": {"terraform_data": resources}}))
    group.run(_terraform(terraform, folder, "init"))
    return folder


def _terraform(terraform: Path, folder: Path, verb: str) -> list[str]:
    # Otherwise it would check for newer versions, and read its user's settings.
    return _in(
        folder,
        {"CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.devnull},
        [str(terraform), verb, "-input=false", "-no-color"],
    )


def _in(folder: Path, environment: Mapping[str, str], argv: Sequence[str]) -> list[str]:
    """Return a command that runs in a folder, with additional environment variables."""
    return ["env", f"--chdir={folder}", *(f"{key}={value}" for key, value in environment.items()), *argv]


def main(rounds: Annotated[int, typer.Option(min=1, help="Number of plans of each case.")] = ROUNDS) -> None:
    """Measure the CPU time of a plan per resource, on three simulated clouds, in turns with terraform."""
    print(f"{machine.read()}; load {machine.load():.1f} before")
    print(table(measure(rounds, alone.say)))


if __name__ == "__main__":
    alone.command(main, CommandError, FailedError)
