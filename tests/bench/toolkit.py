"""Side A: the cluster brought up by `menagerie up`, as a user runs it."""

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
    """One bring-up from nothing and one more `up`.

    seconds, again_s: of the two commands, from their start to their end. cpu_s: of the first, without hosts.
    booted_to_ready_s: from the moment when the last host had booted until the toolkit saw all nodes Ready.
    started_to_ready_s: the same, from when the first host's systemd began.
    ready_cpu_s: until all nodes were Ready, by part: the controller, kinds of hosts, the lab's services.
    steps: seconds of each step of the first `up`, the start of the command among them.
    tasks: of Ansible on the worker that had most. changed: by the second `up`.
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
    """Bring the cluster up twice and take it away. There must be none of it."""
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
    """What the toolkit's processes held when together they held most, in a bring-up from nothing; bytes by name."""
    with Group() as group:
        try:
            return group.run([MENAGERIE, "up", cluster.name, "--yes"], sample_memory=True).peak
        finally:
            take_away(cluster, group)


def check(times: int = 5) -> tuple[float, ...]:
    """Seconds of `menagerie check`, each time."""
    with Group() as group:
        return tuple(group.run([MENAGERIE, "check"]).seconds for _ in range(times))


def killed_up(cluster: str, after_s: float) -> None:
    """Start `up` and kill it with all its children after some seconds, as a machine that goes down would.

    Returns earlier where `up` is done earlier.
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
    """Delete the cluster and whatever is left of its lab."""
    group.run([MENAGERIE, "destroy", cluster.name, "--yes"])


def done_step(line: str) -> str | None:
    """The step that a line of `up` says is done, None for every other line."""
    found = re.match(r"\s*\d+/\d+\s+[\d.]+ s ✓ (.*)", line)
    if not found:
        return None
    return next((name for name in STEPS if found[1].startswith(name)), None)


def step_ends(up: Cost) -> dict[str, float]:
    """When each step of `up` was done, monotonic seconds. CommandError when one is missing."""
    ends = {step: when for when, line in up.lines if (step := done_step(line))}
    if missing := [name for name in STEPS if name not in ends]:
        said = "".join(line for _, line in up.lines)
        raise CommandError(f"`up` never said that it had done {', '.join(missing)}; it said:\n{said}")
    return ends


def step_seconds(began: float, ends: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each step, from when the one before it was done. The first has the start of the command in it."""
    starts = [began, *ends.values()]
    return {name: end - start for (name, end), start in zip(ends.items(), starts, strict=False)}


def kinds(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Every machine of the cluster, by what it does. One that does two things counts as the first."""
    plan = addresses.plan(cluster)
    api = tuple(host.name for host in plan.api_servers)
    members = tuple(host.name for host in plan.hosts() if host.name not in api)
    workers = [host.name for _, host in cluster.host_list()]
    workers += [worker.host.name for worker in workers_in_region(cluster)]
    return {"api_servers": api, "etcds": members, "workers": tuple(workers)}


def host_names(cluster: Cluster) -> tuple[str, ...]:
    """Every machine of the cluster."""
    return tuple(name for names in kinds(cluster).values() for name in names)
