"""``python -m tests.bench.growth``: seconds from submitting a job until it runs on a new host, by part.

Uses the lab if it is up; otherwise brings one up and destroys it afterwards. `autoscaler run` manages its pool in the region,
as a service does. Between rounds the new host is removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from clients.access import API_TIMEOUT_S
from clients.waiting import wait_until
from cluster.errors import TimedOutError
from operations.growth import Probe
from operations.stack import access_to
from operations.verify.workload import IMAGE
from sandbox.lab import hosts
from sandbox.lab.errors import LabError
from tests.bench import alone, on_lab
from tests.bench.figures import Figure
from tests.bench.group import CommandError

ROUNDS = 3
POOL = "region"
PARTS = {
    "decide": "from the submitted job until a host is created: the pod is seen, has waited for `settle`, and is planned for",
    "boot": "until its kubelet has registered: power on, user data, programs from the mirror, a join token",
    "join": "until the node is Ready, with its network",
    "place": "until the pod is bound to it",
    "pull": "until the pod has its network and its image, of 2 MB",
    "start": "until its container runs",
}
_PART_S, _LOOK_S = 900.0, 0.1


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Measure each part in each round. LabError, CommandError or TimedOutError if a job does not run."""
    measured: list[dict[str, float]] = []
    with on_lab.lab(say) as cluster:
        probe = Probe(access_to(cluster).api(), "default", POOL)
        with on_lab.autoscaler():
            for number in range(1, rounds + 1):
                measured.append(_round(probe))
                say(f"round {number}: " + ", ".join(f"{name} {value:.1f} s" for name, value in measured[-1].items()))
    parts = [
        Figure(f"submitted to running: {name}", "s", tuple(one[name] for one in measured), None, PARTS[name])
        for name in PARTS
    ]
    return [Figure("submitted to running on a new host", "s", tuple(sum(one.values()) for one in measured)), *parts]


def _round(probe: Probe) -> dict[str, float]:
    """Return the seconds of each part, in order. Remove the host and the job afterwards."""
    existing = set(hosts.created_hosts())
    checks = (
        lambda: set(hosts.created_hosts()) > existing,
        probe.has_node,
        probe.has_ready_node,
        probe.is_bound,
        probe.has_image,
        probe.runs,
    )
    seconds = {}
    began = time.monotonic()
    probe.submit({"image": IMAGE, "command": ["sleep", "600"]})
    try:
        for name, check in zip(PARTS, checks, strict=True):
            _until(check, name)
            now = time.monotonic()
            seconds[name], began = now - began, now
    finally:
        probe.delete()
        # Wait while its kubelet can still report that the pod has ended.
        _until(lambda: probe.pod() is None, "the job's end")
        node = probe.node()
        for name in set(hosts.created_hosts()) - existing:
            hosts.delete(name)
        if node:
            probe.core.delete_node(node.metadata.name, _request_timeout=API_TIMEOUT_S)
    return seconds


def _until(reached: Callable[[], bool], what: str) -> None:
    wait_until(lambda: "" if reached() else f"{what} takes too long", _PART_S, lambda _: None, _LOOK_S)


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Number of jobs to submit, one after the other.")] = ROUNDS,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure how long a job waits for a host that has to be created for it, by part."""
    alone.run(lambda say: measure(say, rounds), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, LabError, CommandError, TimedOutError)
