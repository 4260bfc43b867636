from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from clients.remote.executor import Done
from cluster.links import Cable, Link
from cluster.spec import Cluster
from operations.links import PROGRAM, check, chosen
from tests.roce.support import fabric


class Fleet:
    """Link checks on machines with prepared results."""

    def __init__(self, **said: Done) -> None:
        self.said, self.asked = said, {}

    def start(self, host: str, words: Sequence[str]) -> Any:
        self.asked[host] = list(words)
        done = self.said[host.replace("-", "_")]
        return type("Running", (), {"wait": lambda _self, _timeout: done})()


def says(host: str, heard: str, port: str, *findings: dict[str, str], code: int = 0) -> Done:
    document = {"host": host, "findings": findings, "notes": [], "ways": []}
    document["heard"] = {"ens1f0": [{"switch": heard, "ports": [port]}]}
    # ssh merges both streams.
    return Done(code, "\n".join([json.dumps(document), *(each["line"] for each in findings)]))


def wrong(host: str, text: str) -> dict[str, str]:
    return {"code": "LNK-005", "link": "ens1f0", "text": text, "line": f"{host} ens1f0: {text} [LNK-005]"}


@pytest.fixture
def cluster(build) -> Cluster:
    """Return four machines on leaf-1, the n-th at port n."""
    made = fabric(build, 4, 1)
    (pool,) = {pool for pool, _ in made.host_list()}
    hosts = tuple(
        host.model_copy(update={"links": {"ens1f0": Cable(switch="leaf-1", port=number)}})
        for number, host in enumerate(made.hosts[pool], 1)
    )
    (name,) = made.spec.sites
    site = made.spec.sites[name].model_copy(update={"links": {pool: {"ens1f0": Link(pci="0000:1a:00.0")}}})
    spec = made.spec.model_copy(update={"sites": {name: site}})
    return Cluster.model_construct(**{**made.__dict__, "spec": spec, "hosts": {pool: hosts}})


def test_cables_swapped_between_two_machines_are_reported_at_both(cluster: Cluster) -> None:
    names = [host.name for _, host in cluster.host_list()]
    texts = [f"leaf-1 swp{heard}, the hosts file says leaf-1 {own}" for own, heard in ((1, 2), (2, 1))]
    said = {
        names[0]: says(names[0], "leaf-1", "swp2", wrong(names[0], texts[0]), code=1),
        names[1]: says(names[1], "leaf-1", "swp1", wrong(names[1], texts[1]), code=1),
        names[2]: says(names[2], "leaf-1", "swp3"),
        names[3]: Done(255, "ssh: connect to host 10.8.0.4 port 22: Connection timed out"),
    }
    fleet = Fleet(**{name.replace("-", "_"): done for name, done in said.items()})
    first, second, third, fourth = check(cluster, names, fleet, 2, 35)
    assert first.lines == (f"{names[0]} ens1f0: {texts[0]}; looks swapped with {names[1]} ens1f0 [LNK-005]",)
    assert second.lines == (f"{names[1]} ens1f0: {texts[1]}; looks swapped with {names[0]} ens1f0 [LNK-005]",)
    assert third.ok
    assert (fourth.unreachable, fourth.failed) == (True, "ssh: connect to host 10.8.0.4 port 22: Connection timed out")
    assert fleet.asked[names[0]] == [PROGRAM, "check", "--json", "--wait", "35"]


def test_for_a_machine_without_the_program_the_error_says_how_to_install_it(cluster: Cluster) -> None:
    (name, *_) = chosen(cluster, [])
    fleet = Fleet(**{name.replace("-", "_"): Done(127, f"bash: line 1: {PROGRAM}: No such file or directory")})
    (answer,) = check(cluster, [name], fleet, 1, 0)
    assert (answer.ok, answer.unreachable) == (False, False)
    assert answer.failed.endswith(f"run: ./menagerie configure {cluster.name} --tags links --limit {name}")


def test_machines_are_chosen_by_pattern_and_only_those_with_links(cluster: Cluster) -> None:
    names = [host.name for _, host in cluster.host_list()]
    assert chosen(cluster, []) == names
    assert chosen(cluster, [names[1], "nobody*"]) == [names[1]]
    assert chosen(fabric_without_links(cluster), []) == []


def fabric_without_links(cluster: Cluster) -> Cluster:
    sites = {name: site.model_copy(update={"links": {}}) for name, site in cluster.spec.sites.items()}
    spec = cluster.spec.model_copy(update={"sites": sites})
    return Cluster.model_construct(**{**cluster.__dict__, "spec": spec})
