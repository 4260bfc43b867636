"""``python -m tests.bench.growth``: seconds from a submitted job until it runs on a host that was not there, by part.

Uses the lab that is up, or one of its own that it takes away afterwards. `autoscaler run` looks after its pool in the region as a
service does. Between rounds the host that came is taken away.
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
    "decide": "from the submitted job until a host is made: the pod is seen, has waited for `settle`, and is planned for",
    "boot": "until its kubelet has registered: power on, user data, programs from the mirror, a join token",
    "join": "until the node is Ready, with its network",
    "place": "until the pod is bound to it",
    "pull": "until the pod has its network and its image, of 2 MB",
    "start": "until its container runs",
}
_PART_S, _LOOK_S = 900.0, 0.1


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Each part of each round. LabError, CommandError or TimedOutError where a job does not get to run."""
    seen: list[dict[str, float]] = []
    with on_lab.lab(say) as cluster:
        probe = Probe(access_to(cluster).api(), "default", POOL)
        with on_lab.autoscaler():
            for number in range(1, rounds + 1):
                seen.append(_round(probe))
                say(f"round {number}: " + ", ".join(f"{name} {value:.1f} s" for name, value in seen[-1].items()))
    parts = [
        Figure(f"submitted to running: {name}", "s", tuple(s[name] for s in seen), None, PARTS[name]) for name in PARTS
    ]
    return [Figure("submitted to running on a new host", "s", tuple(sum(s.values()) for s in seen)), *parts]


def _round(probe: Probe) -> dict[str, float]:
    """Seconds of each part, in order. The host and the job are gone afterwards."""
    there = set(hosts.known())
    looks = (
        lambda: set(hosts.known()) > there,
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
        for name, look in zip(PARTS, looks, strict=True):
            _until(look, name)
            now = time.monotonic()
            seconds[name], began = now - began, now
    finally:
        probe.delete()
        # While its kubelet is there to say that the pod is gone.
        _until(lambda: probe.pod() is None, "the job's end")
        node = probe.node()
        for name in set(hosts.known()) - there:
            hosts.delete(name)
        if node:
            probe.core.delete_node(node.metadata.name, _request_timeout=API_TIMEOUT_S)
    return seconds


def _until(reached: Callable[[], bool], what: str) -> None:
    wait_until(lambda: "" if reached() else f"{what} lasts", _PART_S, lambda _: None, _LOOK_S)


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often a job is submitted.")] = ROUNDS,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure how long a job waits for a host that has to be made for it, by part."""
    alone.run(lambda say: measure(say, rounds), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, LabError, CommandError, TimedOutError)
