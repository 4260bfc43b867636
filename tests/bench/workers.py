"""``python -m tests.bench.workers``: Ansible's controller CPU per worker, from few to many, and compared with a peer's run.

Hosts are names for this machine: the connection is local, and instead of the host's Python a shell script reads the module
and answers that nothing has changed. This measures the controller in a second run, with everything except ssh. The shell of
the local connection replaces the ssh process; ssh's encryption and slow hosts are left out. This is the same for both sides.

The peer's run has the shape of kubespray's (see `tests.bench.peer`). CPU time depends less on other work than wall-clock time.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cluster.project import ROOT
from inventories.batches import batches
from inventories.build import Inventory, build
from inventories.report import merged
from inventories.run import run
from tests.bench import alone, machine, peer
from tests.bench.figures import Figure, ratios, table
from tests.bench.fleet import fleet, outputs

SIZES = (10, 100, 1_000)
PEER_HOSTS = 10
ROUNDS = 2
EXPONENT_AIM, PEER_AIM = 1.05, 1 / 20
TIMEOUT_S, ATTEMPTS = 3, 2
OURS, THEIRS, UNREACHABLE = "ours", "theirs", "unreachable"


class BenchError(Exception):
    """A measured run failed."""


@dataclass(frozen=True)
class Run:
    """hosts: number of hosts. tasks: tasks on one host. cpu_s: of the controller. seconds: of the wall clock."""

    hosts: int
    tasks: int
    cpu_s: float
    seconds: float


def measure(
    say: Callable[[str], None], sizes: Sequence[int] = SIZES, peers: int = PEER_HOSTS, rounds: int = ROUNDS
) -> list[Figure]:
    """Measure each size once, then the toolkit and the peer in turns, then a run with a dead host."""
    ours = []
    for size in sizes:
        ours.append(_measured(OURS, size))
        say(f"{size} workers: {ours[-1].cpu_s / size * 1000:.0f} ms of CPU each, {ours[-1].seconds:.0f} s")
    pairs = []
    for number in range(1, rounds + 1):
        pairs.append((_measured(OURS, peers), _measured(THEIRS, peers)))
        say(f"round {number}: " + ", ".join(f"{each.cpu_s / peers:.2f} s of CPU a worker" for each in pairs[-1]))
    dead = [_measured(kind, 2).seconds for kind in (OURS, UNREACHABLE)]
    return summary(ours, pairs, dead[1] - dead[0])


def summary(ours: Sequence[Run], pairs: Sequence[tuple[Run, Run]], dead_s: float) -> list[Figure]:
    """Return the figures. Ratios compare the two runs of one round."""
    small = [[run.cpu_s / run.hosts for run in side] for side in zip(*pairs, strict=True)]
    tasks = [[run.cpu_s / run.hosts / run.tasks for run in side] for side in zip(*pairs, strict=True)]
    theirs = pairs[0][1]
    what = f"a run of kubespray's shape, {theirs.tasks} tasks a worker"
    return [
        *(Figure(f"controller CPU a worker, of {run.hosts}", "s", (run.cpu_s / run.hosts,)) for run in ours),
        Figure(
            "exponent of controller CPU over workers",
            "",
            (exponent([run.hosts for run in ours], [run.cpu_s for run in ours]),),
            EXPONENT_AIM,
            "least squares on logarithms; below 1 because starting costs the same at every size",
        ),
        Figure(
            "CPU of the last worker ÷ of one in the smaller fleet",
            "",
            (marginal(ours[-2], ours[-1]),),
            None,
            "what one more costs between the two largest sizes, over the mean of the smaller",
        ),
        Figure(f"controller CPU a worker, of {pairs[0][0].hosts}, {pairs[0][0].tasks} tasks", "s", tuple(small[0])),
        Figure(f"controller CPU a worker, {what}", "s", tuple(small[1]), None, peer.NOTE),
        Figure("controller CPU a worker ÷ a run of kubespray's shape", "", ratios(*small), PEER_AIM),
        Figure(
            "controller CPU a task ÷ a task of kubespray's shape",
            "",
            ratios(*tasks),
            None,
            "tasks that its conditions skip count as tasks",
        ),
        Figure(
            "a run of two workers, longer with one dead",
            "s",
            (dead_s,),
            float(ATTEMPTS * TIMEOUT_S + 1),
            f"its address answers nothing; ansible_timeout is {TIMEOUT_S} s, and ansible.cfg lets ssh try {ATTEMPTS} times",
        ),
    ]


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return b of costs = a · sizes^b, by least squares on logarithms. ValueError for fewer than two sizes."""
    if len(sizes) < 2:
        raise ValueError("an exponent needs at least two sizes")
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((each - mean_x) ** 2 for each in x)
    return sum((each - mean_x) * (other - mean_y) for each, other in zip(x, y, strict=True)) / spread


def marginal(smaller: Run, larger: Run) -> float:
    """Return the CPU time per additional worker between the two runs, relative to the mean of the smaller run."""
    more = (larger.cpu_s - smaller.cpu_s) / (larger.hosts - smaller.hosts)
    return more / (smaller.cpu_s / smaller.hosts)


def _measured(kind: str, hosts: int) -> Run:
    """Do one run in a separate process. The kernel counts it with all its waited-for children (getrusage(2))."""
    command = [sys.executable, "-m", "tests.bench.workers", "--run", kind, "--hosts", str(hosts)]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        output.seek(0)
        if process.returncode:
            errors.seek(0)
            raise BenchError(f"{kind}, {hosts} hosts: {errors.read()[-2000:]}")
        return Run(hosts, int(json.loads(output.read())["tasks"]), used.ru_utime + used.ru_stime, seconds)


def _run(kind: str, hosts: int) -> int:
    """Do the run that `_measured` starts. Return the tasks on one host."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        inventory = answered(build(fleet(hosts), outputs()), peer.interpreter(folder), dead=kind == UNREACHABLE)
        root = peer.root(folder) if kind == THEIRS else ROOT
        shares = batches(inventory.hosts, None)
        report = merged(run(inventory.only(share), root=root) for share in shares)
    broken = [
        host for host in (*report.failed, *report.unreachable) if kind != UNREACHABLE or host != inventory.hosts[0]
    ]
    if broken:
        raise BenchError(f"{broken[0]}: {report.failures[0].message}")
    return report.hosts[inventory.hosts[-1]].tasks


def answered(inventory: Inventory, interpreter: Path, *, dead: bool) -> Inventory:
    """Return the inventory with this machine in place of every host. dead: the first host gets an unused address."""
    whole: Mapping[str, Any] = inventory.data["all"]
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(interpreter)}
    unused = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_timeout": TIMEOUT_S}
    hosts = {host: {**values, **local} for host, values in whole["hosts"].items()}
    if dead:  # 192.0.2.0/24 is for documentation (RFC 5737)
        hosts[inventory.hosts[0]] |= unused
    return replace(inventory, data={"all": {**whole, "hosts": hosts}})


def main(
    sizes: Annotated[str, typer.Option(help="Fleet sizes to measure, separated by commas.")] = ",".join(
        map(str, SIZES)
    ),
    peers: Annotated[int, typer.Option(min=1, help="Number of workers in the comparison with the peer.")] = PEER_HOSTS,
    rounds: Annotated[int, typer.Option(min=1, help="How often both run, in turns.")] = ROUNDS,
    kind: Annotated[str, typer.Option("--run", hidden=True)] = "",
    hosts: Annotated[int, typer.Option(hidden=True)] = 0,
) -> None:
    """Measure Ansible's controller CPU over fleets of made-up workers, and compare it with a run of kubespray's shape."""
    if kind:
        print(json.dumps({"tasks": _run(kind, hosts)}))
        return
    print(f"{machine.read()}; load {machine.load():.1f} before")
    chosen = [int(size) for size in sizes.split(",")]
    figures = measure(alone.say, chosen, peers, rounds)
    print(table(figures))
    print(f"load {machine.load():.1f} after, with this run in it")


if __name__ == "__main__":
    alone.command(main, BenchError)
