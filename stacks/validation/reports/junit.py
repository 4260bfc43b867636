"""The report as JUnit XML: one test suite per cluster, one test case per stage.

The format is the one that Jenkins and GitLab read; it has no standard. Neither has a place for warnings and notes, so
these go to the output of their case.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from stacks.validation.model import CLAIMS, ClusterResult, Finding, Outcome, Report, StageResult

# Characters that XML 1.0 can't represent.
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(report: Report) -> str:
    """Return the whole file."""
    cases = [stage for cluster in report.clusters for stage in cluster.stages]
    root = ElementTree.Element("testsuites", {"name": "menagerie validate", **_counts(cases, report.seconds)})
    for cluster in report.clusters:
        root.append(_suite(cluster))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(cluster: ClusterResult) -> ElementTree.Element:
    named = {"name": cluster.cluster, "file": cluster.file}
    suite = ElementTree.Element("testsuite", {**named, **_counts(cluster.stages, cluster.seconds)})
    for stage in cluster.stages:
        suite.append(_case(cluster, stage))
    return suite


def _case(cluster: ClusterResult, stage: StageResult) -> ElementTree.Element:
    name = f"{stage.stage}: {CLAIMS[stage.stage]}"
    case = ElementTree.Element(
        "testcase",
        {"classname": cluster.cluster, "name": name, "file": cluster.file, "time": f"{stage.seconds:.1f}"},
    )
    errors = [finding for finding in stage.findings if finding.severity == "error"]
    others = [finding for finding in stage.findings if finding.severity != "error"]
    if stage.outcome is Outcome.SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": _clean(stage.summary)})
    if errors:
        kinds = ", ".join(dict.fromkeys(finding.rule for finding in errors))
        message = _clean(errors[0].message.partition("\n")[0])
        failure = ElementTree.SubElement(case, "failure", {"type": kinds, "message": message})
        failure.text = _lines(errors)
    if output := "\n".join(filter(None, (stage.summary, _lines(others)))):
        ElementTree.SubElement(case, "system-out").text = _clean(output)
    return case


def _counts(stages: list[StageResult] | tuple[StageResult, ...], seconds: float) -> dict[str, str]:
    outcomes = [stage.outcome for stage in stages]
    return {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count(Outcome.FAILED)),
        "errors": "0",
        "skipped": str(outcomes.count(Outcome.SKIPPED)),
        "time": f"{seconds:.1f}",
    }


def _lines(findings: list[Finding]) -> str:
    return _clean("\n".join(map(str, findings)))


def _clean(value: str) -> str:
    return _FORBIDDEN.sub("�", value)
