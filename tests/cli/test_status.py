"""`status`: what is printed for one cluster and for all, once and again and again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from operations import stack
from operations.status import Item, Status
from tests.cli.terminal import Menagerie

GOOD = Item("nodes", "worker-1", True, "Ready")
BAD = Item("etcds", "etcd-main-1", False, "member of main, dead", "./menagerie etcd replace lab main etcd-main-1")


@pytest.fixture
def seen(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> list[Status]:
    """The lab is built, and `read_status` gives these one after another; then somebody interrupts."""
    given: list[Status] = []

    def look(*_: object) -> Status:
        if not given:
            raise KeyboardInterrupt
        return given.pop(0)

    kept = stack.STATE / "lab" / "pulumi" / ".pulumi" / "stacks" / "menagerie"
    kept.mkdir(parents=True)
    (kept / "lab.json").touch()
    monkeypatch.setattr(stack, "access_to", lambda *_: None)
    monkeypatch.setattr("operations.status.read_status", look)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return given


def test_what_is_not_ok_ends_with_the_command_that_helps(menagerie: Menagerie, seen: list[Status]) -> None:
    seen.append(Status("lab", "https://10.77.0.10:6443", (GOOD, BAD)))
    ran = menagerie("status", "lab")
    assert ran.code == 1
    assert ran.out.splitlines()[1].endswith("member of main, dead  → ./menagerie etcd replace lab main etcd-main-1")


def test_without_a_cluster_there_is_a_row_for_each_and_only_the_built_ones_count(
    menagerie: Menagerie, seen: list[Status], fleet: Path
) -> None:
    seen += [Status("lab", "https://x", (GOOD,)), Status("lab", "https://x", (GOOD, BAD))]
    ran = menagerie("status")
    assert ran.code == 0
    rows = {line.split()[0]: line for line in ran.out.splitlines()}
    assert list(rows) == ["horus", "ibis", "jaguar", "lab"]
    assert rows["jaguar"].split(maxsplit=1)[1] == "not built    → ./menagerie up jaguar"
    assert rows["lab"].split(maxsplit=1)[1] == "well       1 ok; https://x"
    ill = menagerie("status", "--json")
    assert ill.code == 1
    assert {row["cluster"]: row["state"] for row in ill.json["clusters"]}["lab"] == "not well"


def test_a_watch_off_a_terminal_prints_what_has_changed(menagerie: Menagerie, seen: list[Status]) -> None:
    seen += [Status("lab", "https://x", (GOOD,)), Status("lab", "https://x", (GOOD,))]
    seen += [Status("lab", "https://x", (replace(GOOD, ok=False, detail="NotReady"),))]
    ran = menagerie("status", "lab", "--watch", "5")
    assert ran.code == 0
    lines = [line.split(maxsplit=1)[1] for line in ran.out.splitlines()]
    assert [line.split()[0] for line in lines] == ["nodes", "endpoint", "nodes", "endpoint"]
    assert "NotReady" in lines[2]


def test_a_watch_for_machines_is_a_document_a_line(menagerie: Menagerie, seen: list[Status]) -> None:
    seen += [Status("lab", "https://x", (GOOD,)), Status("lab", "https://x", (BAD,))]
    ran = menagerie("status", "lab", "--watch", "5s", "--json")
    documents = [json.loads(line) for line in ran.out.splitlines()]
    assert [document["ok"] for document in documents] == [True, False]
    assert documents[1]["items"][0]["help"] == BAD.help
