"""The report as SARIF 2.1.0, which code hosts show next to the lines of a change.

"Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS; section numbers below refer to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from cluster.codes import MEANING
from stacks import policies
from stacks.validation.model import CLAIMS, RULES, ClusterResult, Finding, Report, StageResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


def text(report: Report) -> str:
    """Return the whole file."""
    return json.dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, Any]:
    """Return one run, whose results are all findings of all clusters."""
    findings = [
        (cluster, stage, finding)
        for cluster in report.clusters
        for stage in cluster.stages
        for finding in stage.findings
    ]
    ids = sorted({finding.rule for _, _, finding in findings})
    indexes = {id_: index for index, id_ in enumerate(ids)}
    run = {
        "tool": {"driver": {"name": "menagerie validate", "rules": [_rule(id_) for id_ in ids]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not any(finding.rule == "crashed" for _, _, finding in findings)}],
        "results": [_result(cluster, stage, finding, indexes) for cluster, stage, finding in findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(id_: str) -> dict[str, Any]:
    """3.49: a reportingDescriptor."""
    return {"id": id_, "shortDescription": {"text": _meaning(id_)}}


def _meaning(id_: str) -> str:
    own = {rule.id: rule.says for rule in policies.RULES}
    return {**MEANING, **RULES, **own}.get(id_, id_)


def _result(cluster: ClusterResult, stage: StageResult, finding: Finding, places: Mapping[str, int]) -> dict[str, Any]:
    """3.27: a result. Its levels are error, warning, note and none."""
    message = f"{cluster.cluster}: {finding.message}"
    if finding.way_out:
        message += f"\nFix: {finding.way_out}"
    return {
        "ruleId": finding.rule,
        "ruleIndex": places[finding.rule],
        "level": finding.severity,
        "message": {"text": message},
        "locations": [_location(finding, cluster)],
        "properties": {"cluster": cluster.cluster, "stage": stage.stage.value, "claim": CLAIMS[stage.stage]},
    }


def _location(finding: Finding, cluster: ClusterResult) -> dict[str, Any]:
    """3.28: where a finding is in the spec, and which resource it concerns."""
    physical: dict[str, Any] = {"artifactLocation": _artifact(finding.file or cluster.file)}
    if finding.line:
        physical["region"] = {"startLine": finding.line, **({"startColumn": finding.column} if finding.column else {})}
    if not finding.resource:
        return {"physicalLocation": physical}
    logical = {"fullyQualifiedName": finding.resource, "kind": "resource"}
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _artifact(file: str) -> dict[str, str]:
    """3.4: relative to the checkout if it is inside."""
    uri = quote(file)
    return {"uri": f"file://{uri}"} if file.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}
