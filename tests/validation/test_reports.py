"""The report for machines: golden files, and conformance to the formats."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml

from cli.main import named
from stacks.validation.model import RULES, Report, Stage, StageResult
from stacks.validation.reports import junit, sarif

GOLDEN = Path(__file__).parent / "golden"

_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_ARTIFACT = {
    "type": "object",
    "required": ["uri"],
    "additionalProperties": False,
    "properties": {
        "uri": {"type": "string", "pattern": "^[^ \\\\]+$"},
        "uriBaseId": {"const": "%SRCROOT%"},
    },
}
_REGION = {
    "type": "object",
    "required": ["startLine"],
    "additionalProperties": False,
    "properties": {"startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}},
}
_LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {"artifactLocation": _ARTIFACT, "region": _REGION},
        },
        "logicalLocations": {"type": "array", "items": {"type": "object", "required": ["fullyQualifiedName", "kind"]}},
    },
}
_RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _TEXT,
        "locations": {"type": "array", "minItems": 1, "items": _LOCATION},
        "properties": {"type": "object"},
    },
}
# What sections 3.13 to 3.30 and 3.49 of the standard require of the parts that we write.
STRUCTURE = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {"shortDescription": _TEXT},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                    "results": {"type": "array", "items": _RESULT},
                },
            },
        },
    },
}


def golden(name: str, text: str) -> None:
    """Compare with a golden file. MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the difference."""
    path = GOLDEN / name
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "run `make golden`, and read the difference"


def test_the_json_report_equals_its_golden_file(report: Report) -> None:
    golden("report.json", json.dumps(report.to_json(), indent=2, sort_keys=True) + "\n")


def test_the_sarif_report_equals_its_golden_file(report: Report) -> None:
    golden("report.sarif", sarif.text(report))


def test_the_junit_report_equals_its_golden_file(report: Report) -> None:
    golden("report.xml", junit.text(report))


def test_sarif_has_the_structure_of_the_standard(report: Report) -> None:
    document = json.loads(sarif.text(report))
    jsonschema.Draft7Validator.check_schema(STRUCTURE)
    jsonschema.validate(document, STRUCTURE)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda result: result.update(level="fatal"),
        lambda result: result["locations"][0]["physicalLocation"]["region"].update(startLine=0),
        lambda result: result.pop("message"),
    ],
)
def test_the_structure_refuses_what_the_standard_refuses(report: Report, spoil: Any) -> None:
    document = json.loads(sarif.text(report))
    spoil(document["runs"][0]["results"][0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, STRUCTURE)


def test_every_finding_is_one_result_at_its_line_with_an_explained_rule(report: Report) -> None:
    (run,) = json.loads(sarif.text(report))["runs"]
    rules = run["tool"]["driver"]["rules"]
    findings = [finding for cluster in report.clusters for finding in cluster.findings]
    assert [result["ruleId"] for result in run["results"]] == [finding.rule for finding in findings]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [finding.rule for finding in findings]
    assert [rule["id"] for rule in rules if rule["shortDescription"]["text"] == rule["id"]] == []
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [place.get("region", {}).get("startLine", 0) for place in places] == [finding.line for finding in findings]
    assert "inventories/new%20one/cluster.yaml" in {place["artifactLocation"]["uri"] for place in places}


def test_junit_has_a_suite_per_cluster_and_a_case_per_stage_with_correct_totals(report: Report) -> None:
    root = ElementTree.fromstring(junit.text(report))
    suites = list(root)
    assert [suite.get("name") for suite in suites] == [cluster.cluster for cluster in report.clusters]
    for suite, cluster in zip(suites, report.clusters, strict=True):
        cases = suite.findall("testcase")
        assert [case.get("name", "").partition(":")[0] for case in cases] == [stage.stage for stage in cluster.stages]
        for name, tag in (("failures", "failure"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(suite.findall(f"testcase/{tag}")))
    for name in ("tests", "failures", "skipped"):
        assert root.get(name) == str(sum(int(suite.get(name, "")) for suite in suites))


def test_a_stage_survives_the_trip_through_json(report: Report) -> None:
    for cluster in report.clusters:
        for stage in cluster.stages:
            assert StageResult.from_json(json.loads(json.dumps(stage.to_json()))) == stage


def test_the_documentation_explains_every_id_and_every_stage() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ci.md").read_text()
    assert [id_ for id_, says in RULES.items() if f"| `{id_}` | {says} |" not in text] == []
    assert [stage for stage in Stage if f"| {stage} |" not in text] == []


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_the_ready_made_jobs_are_yaml_and_use_existing_options_of_the_verb(name: str) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "ci" / name).read_text()
    steps = str(yaml.safe_load(text))
    options = {option for parameter in named("validate").params for option in parameter.opts}
    (line,) = (line for line in text.splitlines() if "./menagerie validate" in line)
    used = {word for word in line.split() if word.startswith("--")}
    assert used == {"--sarif", "--junit"} & options
    assert "python -m tools pulumi" in steps
