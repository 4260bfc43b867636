"""`status`: output for one cluster and for all, once and with --watch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from operations import stack
from operations.status import Status, StatusItem
from tests.cli.terminal import Menagerie

GOOD = StatusItem("nodes", "worker-1", True, "Ready")
BAD = StatusItem("etcds", "etcd-main-1", False, "member of main, dead", "./menagerie etcd replace lab main etcd-main-1")


@pytest.fixture
def statuses(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> list[Status]:
    """The lab is built. `read_status` returns these statuses in turn, and then the run is interrupted."""
    queue: list[Status] = []

    def look(*_: object) -> Status:
        if not queue:
            raise KeyboardInterrupt
        return queue.pop(0)

    stacks = stack.STATE / "lab" / "pulumi" / ".pulumi" / "stacks" / "menagerie"
    stacks.mkdir(parents=True)
    (stacks / "lab.json").touch()
    monkeypatch.setattr(stack, "access_to", lambda *_: None)
    monkeypatch.setattr("operations.status.read.read_status", look)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return queue


def test_a_line_that_is_not_ok_ends_with_the_command_that_helps(menagerie: Menagerie, statuses: list[Status]) -> None:
    statuses.append(Status("lab", "https://10.77.0.10:6443", (GOOD, BAD)))
    ran = menagerie("status", "lab")
    assert ran.code == 1
    assert ran.out.splitlines()[1].endswith("member of main, dead  → ./menagerie etcd replace lab main etcd-main-1")


def test_without_a_cluster_each_has_a_row_and_only_built_ones_count(
    menagerie: Menagerie, statuses: list[Status], fleet: Path
) -> None:
    statuses += [Status("lab", "https://x", (GOOD,)), Status("lab", "https://x", (GOOD, BAD))]
    ran = menagerie("status")
    assert ran.code == 0
    rows = {line.split()[0]: line for line in ran.out.splitlines()}
    assert list(rows) == ["horus", "ibis", "jaguar", "lab"]
    assert rows["jaguar"].split(maxsplit=1)[1] == "not built    → ./menagerie up jaguar"
    assert rows["lab"].split(maxsplit=1)[1] == "well       1 ok; https://x"
    unhealthy = menagerie("status", "--json")
    assert unhealthy.code == 1
    assert {row["cluster"]: row["state"] for row in unhealthy.json["clusters"]}["lab"] == "not well"


def test_a_watch_without_a_terminal_prints_changed_lines(menagerie: Menagerie, statuses: list[Status]) -> None:
    statuses += [Status("lab", "https://x", (GOOD,)), Status("lab", "https://x", (GOOD,))]
    statuses += [Status("lab", "https://x", (replace(GOOD, ok=False, detail="NotReady"),))]
    ran = menagerie("status", "lab", "--watch", "5")
    assert ran.code == 0
    lines = [line.split(maxsplit=1)[1] for line in ran.out.splitlines()]
    assert [line.split()[0] for line in lines] == ["nodes", "endpoint", "nodes", "endpoint"]
    assert "NotReady" in lines[2]


def test_a_watch_with_json_prints_a_document_per_line(menagerie: Menagerie, statuses: list[Status]) -> None:
    statuses += [Status("lab", "https://x", (GOOD,)), Status("lab", "https://x", (BAD,))]
    ran = menagerie("status", "lab", "--watch", "5s", "--json")
    documents = [json.loads(line) for line in ran.out.splitlines()]
    assert [document["ok"] for document in documents] == [True, False]
    assert documents[1]["items"][0]["help"] == BAD.help
