"""Fetching facts of disks from hosts that answer, lack the program, or can't be reached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from clients.remote.executor import UNREACHABLE, Done
from cluster.load import check_paths
from cluster.spec import Cluster
from components.ceph.names import of
from operations.disks import PROGRAM, gather

SPEC = Path(__file__).parents[1] / "specs" / "valid-ceph.yaml"


@pytest.fixture(scope="module")
def narwhal() -> Cluster:
    (loaded,), _ = check_paths([SPEC])
    return loaded.cluster


class Hosts:
    """Responses by host name; all others respond with `usual`."""

    def __init__(self, usual: Done, **others: Done) -> None:
        self.usual = usual
        self.others = {name.replace("_", "-"): done for name, done in others.items()}
        self.host = ""

    def start(self, host: str, words: Sequence[str]) -> Hosts:
        assert words == [PROGRAM, "--json"]
        made = Hosts(self.others.get(host, self.usual))
        return made

    def wait(self, timeout_s: float) -> Done:
        return self.usual

    def stop(self) -> None:
        raise AssertionError("nothing is stopped")


def facts(code: int = 0, before: str = "") -> Done:
    return Done(code, before + json.dumps({"host": "x", "disks": [], "addresses": [], "wrong": []}) + "\n")


def test_each_host_s_facts_are_in_a_file_with_its_spec_name_whatever_its_own_name(
    narwhal: Cluster, tmp_path: Path
) -> None:
    answers = list(gather(narwhal, of(narwhal), Hosts(facts()), tmp_path / "found", lambda _: None))
    names = [host.name for _, host in narwhal.host_list()]
    assert [answer.host for answer in answers] == names
    assert sorted(path.stem for path in (tmp_path / "found").iterdir()) == sorted(names)
    assert {json.loads(path.read_text())["host"] for path in (tmp_path / "found").iterdir()} == set(names)


def test_a_host_whose_disks_differ_from_the_spec_still_has_facts(narwhal: Cluster, tmp_path: Path) -> None:
    answers = list(gather(narwhal, of(narwhal), Hosts(facts(1, "a warning\n")), tmp_path, lambda _: None))
    assert all(answer.file for answer in answers)


@pytest.mark.parametrize(
    ("done", "why", "unreachable"),
    [
        (Done(127, "sudo: menagerie-disks: command not found\n"), "--tags storage_host", False),
        (Done(UNREACHABLE, "ssh: connect to host 10.10.0.11 port 22: No route to host\n"), "No route to host", True),
        (Done(124, "still running after 120 s"), "still running after 120 s", True),
        (Done(1, "storage-1: /etc/menagerie/storage.json: no such file\n"), "no such file", False),
        (Done(1, ""), "exit code 1", False),
        (Done(0, '{"host": "x"}\n'), '{"host": "x"}', False),
    ],
)
def test_a_host_without_facts_is_reported_with_the_reason_and_keeps_its_older_facts(
    narwhal: Cluster, tmp_path: Path, done: Done, why: str, unreachable: bool
) -> None:
    first = narwhal.host_list()[0][1].name
    (tmp_path / f"{first}.json").write_text("older")
    answers = list(gather(narwhal, of(narwhal), Hosts(facts(), **{first: done}), tmp_path, lambda _: None))
    (lost,) = [answer for answer in answers if answer.file is None]
    assert (lost.host, lost.unreachable) == (first, unreachable)
    assert why in lost.why
    assert (tmp_path / f"{first}.json").read_text() == "older"
