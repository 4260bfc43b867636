"""``python -m tests.bench.recovery``: seconds from a loss until the lab has recovered, and the part of the repairing verb.

Uses the lab if it is up; otherwise brings one up and destroys it afterwards. Everything lost is restored.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S, Access
from clients.waiting import wait_until
from cluster.errors import TimedOutError
from cluster.spec import Cluster
from etcd.members import data_dir
from etcd.templates import unit_name
from operations.stack import access_to
from sandbox.lab import hosts
from sandbox.lab.errors import LabError
from tests.bench import alone, on_lab
from tests.bench.faults import Victims
from tests.bench.figures import Figure
from tests.bench.group import CommandError
from tests.bench.injections import do

ROUNDS = 3
AIM_S = 60.0
_SERVES_S = 120.0


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Measure the three losses in turns. LabError, CommandError or TimedOutError if the lab does not recover."""
    with on_lab.lab(say) as cluster:
        access = access_to(cluster)
        times: dict[str, list[Taken]] = {}
        for number in range(1, rounds + 1):
            for name, lose in LOSSES.items():
                times.setdefault(name, []).append(lose(cluster, access))
                say(f"round {number}: {name}: {times[name][-1]}")
    return summary(times)


@dataclass(frozen=True)
class Taken:
    """Seconds until the verb was done and the API accepted a write: from the loss, and from the start of the verb."""

    from_loss: float
    from_verb: float

    def __str__(self) -> str:
        return f"{self.from_loss:.1f} s from the loss, {self.from_verb:.1f} s from the start of the verb"


def summary(times: Mapping[str, Sequence[Taken]]) -> list[Figure]:
    """Return two figures per loss. The aim applies to the time from the loss."""
    return [
        figure
        for name, taken in times.items()
        for figure in (
            Figure(f"{name}, from the loss", "s", tuple(each.from_loss for each in taken), AIM_S, _NOTE),
            Figure(f"{name}, from the start of the verb", "s", tuple(each.from_verb for each in taken)),
        )
    ]


def api_server(cluster: Cluster, access: Access) -> Taken:
    """Cut the power of an API server's machine for good. `up` creates a new one and ends when all is healthy."""
    lost = time.monotonic()
    hosts.kill(access.outputs.api_servers[0].name)
    return _recovered(access, lost, "up", cluster.name, "--json")


def member(cluster: Cluster, access: Access) -> Taken:
    """Delete the data of a follower of main while it runs."""
    host = Victims(cluster, access, random.Random(0)).follower("main")
    lost = time.monotonic()
    _lose([host], cluster)
    return _recovered(access, lost, "etcd", "replace", cluster.name, "main", host, "--yes")


def every_member(cluster: Cluster, access: Access) -> Taken:
    """Delete the data of all members of main. The newest backup, made just before, is restored."""
    on_lab.run("etcd", "backup", cluster.name, "main")
    lost = time.monotonic()
    _lose([each.name for each in access.outputs.etcds["main"].members], cluster)
    taken = _recovered(access, lost, "etcd", "restore", cluster.name, "main", "--yes")
    on_lab.run("etcd", "forget", cluster.name, "main", "--older-than", "0s")
    return taken


LOSSES: dict[str, Callable[[Cluster, Access], Taken]] = {
    "API server lost, to all well": api_server,
    "member of main lost, to its vote": member,
    "all members of main lost, to a write": every_member,
}
_NOTE = "until `up`, `etcd replace` or `etcd restore` of a few MB is done and the API accepts a write; the verb starts at once"


def _lose(members: list[str], cluster: Cluster) -> None:
    folder, unit = data_dir(cluster, "main"), unit_name("main")
    for host in members:
        do(host, "sh", "-ec", f"systemctl kill --signal=SIGKILL {unit}; systemctl stop {unit}; rm -rf {folder}/member")
    for host in members:
        do(host, "systemctl", "start", "--no-block", unit)


def _recovered(access: Access, lost: float, *verb: str) -> Taken:
    """Run a verb until the API accepts a write. lost: monotonic time just before the loss."""
    began = time.monotonic()
    on_lab.run(*verb)
    wait_until(lambda: _not_written(access), _SERVES_S, lambda _: None, every_s=0.2)
    ended = time.monotonic()
    return Taken(ended - lost, ended - began)


def _not_written(access: Access) -> str:
    try:
        body = {"metadata": {"generateName": "bench-recovery-"}}
        core = client.CoreV1Api(access.api(once=True))
        made = core.create_namespaced_config_map("default", body, _request_timeout=API_TIMEOUT_S)
        core.delete_namespaced_config_map(made.metadata.name, "default", _request_timeout=API_TIMEOUT_S)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API accepts no write: {error}"
    return ""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often each loss is caused.")] = ROUNDS,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure how long the lab takes to recover after it has lost a machine or its data."""
    alone.run(lambda say: measure(say, rounds), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, LabError, CommandError, TimedOutError)
