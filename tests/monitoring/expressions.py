"""Reads expressions of PromQL: which metrics they name, with which labels. The parser is promql-parser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import promql_parser

from cluster.ceph import Ceph
from cluster.metrics.jobs import JOBS
from cluster.metrics.model import Job
from components.ceph import alerts as ceph_alerts
from components.monitoring.alerts import GROUPS, own
from components.monitoring.dashboards import DASHBOARDS
from components.monitoring.recording import RECORDINGS

LabelsOf = Callable[[str], frozenset[str]]
_KEEPING = ("topk", "bottomk")
"""Aggregations whose results keep all labels."""


class Selector(NamedTuple):
    """A metric in an expression. labels: those that it is selected by. jobs: of its matcher for the label `job`, "" if none."""

    name: str
    labels: frozenset[str]
    jobs: str


def selectors(text: str) -> tuple[Selector, ...]:
    """Return the metrics that an expression reads. Raises ValueError if it is none."""
    selected: list[Selector] = []

    def visit(expression: object) -> None:
        if isinstance(expression, promql_parser.MatrixSelector):
            expression = expression.vector_selector
        if isinstance(expression, promql_parser.VectorSelector):
            matchers = expression.matchers.matchers
            job = next((matcher.value for matcher in matchers if matcher.name == "job"), "")
            name = expression.name or next((each.value for each in matchers if each.name == "__name__"), "")
            selected.append(Selector(name, frozenset(matcher.name for matcher in matchers), job))

    promql_parser.walk(promql_parser.parse(text), visit)
    return tuple(selected)


def grouping(text: str) -> frozenset[str]:
    """Return the labels that an expression groups or matches by."""
    labels: set[str] = set()

    def visit(expression: object) -> None:
        modifier = getattr(expression, "modifier", None)
        if isinstance(expression, promql_parser.AggregateExpr) and modifier:
            labels.update(modifier.labels)
        elif isinstance(expression, promql_parser.BinaryExpr) and modifier and modifier.matching:
            labels.update(modifier.matching.labels)

    promql_parser.walk(promql_parser.parse(text), visit)
    return frozenset(labels)


def results(expression: Any, labels_of: LabelsOf) -> frozenset[str]:
    """Return the labels that a parsed expression's results can have. labels_of: those of a metric, by its name."""
    match expression:
        case promql_parser.VectorSelector():
            return labels_of(expression.name or "")
        case promql_parser.MatrixSelector():
            return labels_of(expression.vector_selector.name or "")
        case promql_parser.AggregateExpr():
            if str(expression.op) in _KEEPING:
                return results(expression.expr, labels_of)
            return frozenset(expression.modifier.labels if expression.modifier else ())
        case promql_parser.BinaryExpr():
            return _of_both(expression, labels_of)
        case promql_parser.Call(func=function) if function.name == "absent":
            # It has the labels that a selector asks to be equal, and none for any other expression.
            (only,) = expression.args
            matchers = only.matchers.matchers if isinstance(only, promql_parser.VectorSelector) else ()
            return frozenset(each.name for each in matchers if each.op == promql_parser.MatchOp.Equal)
        case promql_parser.Call():
            return frozenset[str]().union(*(results(each, labels_of) for each in expression.args))
        case promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            return results(expression.expr, labels_of)
    return frozenset()


def _of_both(expression: Any, labels_of: LabelsOf) -> frozenset[str]:
    """Return the labels of an operator's results: those on both sides, if they are matched by some labels, only these."""
    left, right = results(expression.lhs, labels_of), results(expression.rhs, labels_of)
    modifier = expression.modifier
    if str(expression.op) == "or":
        return left | right
    if str(expression.op) in ("and", "unless"):
        return left
    if not left or not right:  # a number
        return left | right
    if modifier and modifier.group_labels is not None:
        return left | frozenset(modifier.group_labels)
    return frozenset(modifier.matching.labels) if modifier and modifier.matching else left & right


def of_rules() -> Iterator[str]:
    """Yield the expressions of all alerts and recording rules."""
    yield from (alert.expr for alerts in GROUPS.values() for alert in alerts)
    yield own.missing(["node"]).expr
    yield own.too_many(1).expr
    yield from (recording.expr for recording in RECORDINGS)


def of_dashboards() -> Iterator[str]:
    """Yield the expressions of all panels, and the metrics whose labels are choices."""
    for dashboard in DASHBOARDS:
        yield from (query.expr for panel in dashboard.panels for query in panel.queries)
        yield from (variable.metric for variable in dashboard.variables)


def of_ceph() -> Iterator[str]:
    """Yield the expressions of the alerts on Ceph, with those on quotas of teams."""
    disks = {"nvme": {"by_id": "nvme-Micron_7450*", "count": 2, "min_size": "1TiB"}}
    ceph = Ceph.model_validate({"hosts": ["storage"], "disks": disks, "teams": {"robotics": {"block": "1TiB"}}})
    yield from (alert.expression for alert in (*ceph_alerts.ALERTS_OF_CEPH, *ceph_alerts.of_teams(ceph)))


def every() -> tuple[str, ...]:
    """Return all expressions."""
    return (*of_rules(), *of_dashboards(), *of_ceph())


def kept() -> dict[str, list[str]]:
    """Return job -> names in the text format that any expression reads: the content of cluster/metrics/kept.json."""
    read = {selector for text in every() for selector in selectors(text)}
    return {job.name: sorted({each.name for each in read if _of(job, each)}) for job in JOBS}


def _of(job: Job, selector: Selector) -> bool:
    return selector.name in job.samples() and (not selector.jobs or job.name in selector.jobs.split("|"))
