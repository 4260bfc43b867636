"""Data of several versions of Menagerie: what is newer is refused, what is unknown is passed over, what has no version is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clients.access import Access
from cluster import shared
from cluster.audit.evidence import Report
from cluster.journal import Lines
from cluster.outputs import ClusterOutputs
from cluster.shared import NewerDataError
from inventories.journal import Journal
from tests.operations.conftest import outputs


@dataclass(frozen=True)
class Thing:
    name: str
    size: int = 0


@pytest.mark.parametrize("said", [None, 1, "1", 2, "2"])
def test_older_data_and_that_without_a_version_is_read(said: object) -> None:
    shared.check("it", said, 2)


@pytest.mark.parametrize("said", [3, "3", "2.1", "x", "", -1, True, [1], 10**40, "\u00b2"])
def test_newer_data_and_what_is_no_version_is_refused_with_the_way_out(said: object) -> None:
    with pytest.raises(NewerDataError, match="^it is of version .* reads version 2 at most: .*use the checkout of"):
        shared.check("it", said, 2)


def test_fields_that_nobody_knows_are_passed_over_and_one_that_is_needed_is_missed() -> None:
    assert shared.known(Thing, {"name": "a", "colour": "red"}) == Thing("a")
    with pytest.raises(TypeError, match="name"):
        shared.known(Thing, {"size": 1})


def told(**more: Any) -> dict[str, object]:
    """A stack's outputs, as an operator's machine reads them."""
    document = json.loads(outputs().model_dump_json()) | more
    keys = ("operator_certificate", "operator_key", "operator_etcd_certificate", "operator_etcd_key")
    return {"outputs": json.dumps(document), **dict.fromkeys(keys, "")}


def test_a_stack_says_its_version_and_one_from_before_is_read() -> None:
    assert json.loads(outputs().model_dump_json())["version"] == 1
    document = json.loads(outputs().model_dump_json())
    del document["version"]
    assert ClusterOutputs.model_validate_json(json.dumps(document)) == outputs()


def test_nobody_acts_on_a_stack_that_a_newer_menagerie_built() -> None:
    with pytest.raises(NewerDataError, match="what the stack says of the cluster is of version 2"):
        Access.from_stack("lab", told(version=2))


def test_what_only_a_newer_menagerie_knows_of_a_stack_is_passed_over() -> None:
    found = json.loads(outputs().model_dump_json())
    found["api_servers"][0]["rack"] = "r1"
    access = Access.from_stack("lab", told(weather="fine", api_servers=found["api_servers"]))
    assert access.outputs == outputs()


def test_a_journal_that_a_newer_menagerie_wrote_is_refused_and_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"v":1,"host":"a","roles":{"base":"x"}}\n{"v":2,"hosts":["b"]}\n')
    before = path.read_bytes()
    with pytest.raises(NewerDataError, match=f"a line of {path} is of version 2"):
        Journal(path).begin({"a": {"base": "y"}})
    assert path.read_bytes() == before


def test_what_only_a_newer_menagerie_knows_of_a_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"v":1,"host":"a","roles":{"base":"x"},"took_s":3}\n{"cut\n')
    assert Journal(path).is_at("a", {"base": "x"})
    assert list(Lines(path).read(lambda entry: entry["host"])) == ["a"]


REPORT = {
    "kind": "api", "host": "api-1", "taken": 1.0, "processes": [], "files": {}, "texts": {}, "providers": [],
    "certificates": [], "listening": [], "addresses": [], "versions": {}, "unreadable": [],
}  # fmt: skip


def test_a_report_of_a_host_with_another_program_is_read_or_refused() -> None:
    assert Report.model_validate_json(json.dumps({"format": 1, **REPORT, "firmware": {}})).host == "api-1"
    with pytest.raises(NewerDataError, match="the report of how a host is set up is of version 2"):
        Report.model_validate_json(json.dumps({"format": 2, **REPORT}))
