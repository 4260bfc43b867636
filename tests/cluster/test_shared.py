"""Data of other versions of Menagerie: newer data is refused, unknown fields are ignored, data without a version is read."""

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
from inventories.journal import ConfigureJournal
from tests.operations.conftest import outputs


@dataclass(frozen=True)
class Thing:
    name: str
    size: int = 0


@pytest.mark.parametrize("version", [None, 1, "1", 2, "2"])
def test_older_data_and_data_without_a_version_is_read(version: object) -> None:
    shared.check("it", version, 2)


@pytest.mark.parametrize("version", [3, "3", "2.1", "x", "", -1, True, [1], 10**40, "\u00b2"])
def test_newer_data_and_invalid_versions_are_refused_with_a_hint(version: object) -> None:
    with pytest.raises(
        NewerDataError, match="^it has version .* reads at most version 2: .*use the checkout that wrote it"
    ):
        shared.check("it", version, 2)


def test_unknown_fields_are_ignored_and_missing_ones_are_an_error() -> None:
    assert shared.from_known_fields(Thing, {"name": "a", "colour": "red"}) == Thing("a")
    with pytest.raises(TypeError, match="name"):
        shared.from_known_fields(Thing, {"size": 1})


def stack_outputs(**more: Any) -> dict[str, object]:
    """Return a stack's outputs in the form that an operator's machine reads."""
    document = json.loads(outputs().model_dump_json()) | more
    keys = ("operator_certificate", "operator_key", "operator_etcd_certificate", "operator_etcd_key")
    return {"outputs": json.dumps(document), **dict.fromkeys(keys, "")}


def test_outputs_have_a_version_and_those_without_are_read() -> None:
    assert json.loads(outputs().model_dump_json())["version"] == 1
    document = json.loads(outputs().model_dump_json())
    del document["version"]
    assert ClusterOutputs.model_validate_json(json.dumps(document)) == outputs()


def test_outputs_of_a_newer_menagerie_are_refused() -> None:
    with pytest.raises(NewerDataError, match="the document of the stack's outputs has version 2"):
        Access.from_stack("lab", stack_outputs(version=2))


def test_unknown_fields_of_outputs_are_ignored() -> None:
    document = json.loads(outputs().model_dump_json())
    document["api_servers"][0]["rack"] = "r1"
    access = Access.from_stack("lab", stack_outputs(weather="fine", api_servers=document["api_servers"]))
    assert access.outputs == outputs()


def test_a_journal_of_a_newer_menagerie_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"v":1,"host":"a","roles":{"base":"x"}}\n{"v":2,"hosts":["b"]}\n')
    before = path.read_bytes()
    with pytest.raises(NewerDataError, match=f"a line of {path} has version 2"):
        ConfigureJournal(path).begin({"a": {"base": "y"}})
    assert path.read_bytes() == before


def test_unknown_fields_of_a_journal_line_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"v":1,"host":"a","roles":{"base":"x"},"took_s":3}\n{"cut\n')
    assert ConfigureJournal(path).is_at("a", {"base": "x"})
    assert list(Lines(path).read(lambda entry: entry["host"])) == ["a"]


REPORT = {
    "kind": "api", "host": "api-1", "taken": 1.0, "processes": [], "files": {}, "texts": {}, "providers": [],
    "certificates": [], "listening": [], "addresses": [], "versions": {}, "unreadable": [],
}  # fmt: skip


def test_a_report_of_another_collector_version_is_read_or_refused() -> None:
    assert Report.model_validate_json(json.dumps({"format": 1, **REPORT, "firmware": {}})).host == "api-1"
    with pytest.raises(NewerDataError, match="a host's report has version 2"):
        Report.model_validate_json(json.dumps({"format": 2, **REPORT}))
