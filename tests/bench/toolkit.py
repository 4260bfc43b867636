"""Side A: the cluster brought up by `menagerie up`, as an operator runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from cluster.project import ROOT
from cluster.spec import Cluster
from network import addresses
from operations.build import STEPS
from stacks.lab.workers import workers_in_region
from tests.bench import boot
from tests.bench.group import CommandError, Cost, Group, lab_cpu_s

MENAGERIE = str(ROOT / "menagerie")
NODES_READY = STEPS[4]


@dataclass(frozen=True)
class Run:
    """One bring-up from scratch and a second `up`.

    seconds, again_s: duration of the two commands. cpu_s, again_cpu_s: CPU time of each, without hosts.
    booted_to_ready_s: from the boot of the last host until the toolkit saw all nodes Ready.
    started_to_ready_s: the same, from the start of the first host's systemd.
    ready_cpu_s: CPU time until all nodes were Ready, by part: the controller, kinds of hosts, the lab's services.
    steps: seconds of each step of the first `up`, including the start of the command.
    tasks: Ansible tasks on the worker with the most. changed: number of changes by the second `up`.
    """

    seconds: float
    booted_to_ready_s: float
    started_to_ready_s: float
    cpu_s: float
    ready_cpu_s: Mapping[str, float]
    steps: Mapping[str, float]
    again_s: float
    again_cpu_s: float
    tasks: int
    changed: int


def measure(cluster: Cluster) -> Run:
    """Bring the cluster up twice and destroy it. It must not exist at the start."""
    with Group() as group:
        try:
            at_ready: dict[str, float] = {}
            used = group.cpu_s()

            def count(line: str) -> None:
                if done_step(line) == NODES_READY:
                    at_ready.update(controller=group.cpu_s() - used, **lab_cpu_s(kinds(cluster)))

            first = group.run([MENAGERIE, "up", cluster.name, "--yes"], on_line=count)
            ends = step_ends(first)
            ready = ends[NODES_READY]
            boots = boot.read(host_names(cluster))
            again = group.run([MENAGERIE, "up", cluster.name, "--json"])
        finally:
            take_away(cluster, group)
    built = json.loads(again.text)
    return Run(
        seconds=first.seconds,
        booted_to_ready_s=ready - boots.all_booted,
        started_to_ready_s=ready - boots.first_start,
        cpu_s=first.cpu_s,
        ready_cpu_s=at_ready,
        steps=step_seconds(first.began, ends),
        again_s=again.seconds,
        again_cpu_s=again.cpu_s,
        tasks=max(int(host["tasks"]) for host in built["workers"]["hosts"].values()),
        changed=int(built["changed"]),
    )


def peak_memory(cluster: Cluster) -> Mapping[str, int]:
    """Return the memory of the toolkit's processes at their common peak in a bring-up from scratch: bytes by name."""
    with Group() as group:
        try:
            return group.run([MENAGERIE, "up", cluster.name, "--yes"], sample_memory=True).peak
        finally:
            take_away(cluster, group)


def check(times: int = 5) -> tuple[float, ...]:
    """Return the seconds of each run of `menagerie check`."""
    with Group() as group:
        return tuple(group.run([MENAGERIE, "check"]).seconds for _ in range(times))


def killed_up(cluster: str, after_s: float) -> None:
    """Start `up`, and kill it with all its children after some seconds, as if the machine had crashed.

    Return earlier if `up` finishes earlier.
    """
    process = subprocess.Popen(
        [MENAGERIE, "up", cluster, "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def take_away(cluster: Cluster, group: Group) -> None:
    """Destroy the cluster and everything left of its lab."""
    group.run([MENAGERIE, "destroy", cluster.name, "--yes"])


def done_step(line: str) -> str | None:
    """Return the step that a line of `up` reports as done; None for other lines."""
    match = re.match(r"\s*\d+/\d+\s+[\d.]+ s ✓ (.*)", line)
    if not match:
        return None
    return next((name for name in STEPS if match[1].startswith(name)), None)


def step_ends(up: Cost) -> dict[str, float]:
    """Return the monotonic time at which each step of `up` was done. CommandError if a step is missing."""
    ends = {step: when for when, line in up.lines if (step := done_step(line))}
    if missing := [name for name in STEPS if name not in ends]:
        progress = "".join(line for _, line in up.lines)
        raise CommandError(f"`up` never reported {', '.join(missing)} as done; its output:\n{progress}")
    return ends


def step_seconds(began: float, ends: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each step since the previous one was done. The first step includes the start of the command."""
    starts = [began, *ends.values()]
    return {name: end - start for (name, end), start in zip(ends.items(), starts, strict=False)}


def kinds(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Return the cluster's machines by kind. A machine of two kinds counts as the first."""
    plan = addresses.plan(cluster)
    api = tuple(host.name for host in plan.api_servers)
    members = tuple(host.name for host in plan.hosts() if host.name not in api)
    workers = [host.name for _, host in cluster.host_list()]
    workers += [worker.host.name for worker in workers_in_region(cluster)]
    return {"api_servers": api, "etcds": members, "workers": tuple(workers)}


def host_names(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of all machines of the cluster."""
    return tuple(name for names in kinds(cluster).values() for name in names)
