"""Dashboards: panels of known metrics, and JSON that Grafana's own classes wrote."""

from __future__ import annotations

import json
import re

import pytest

from cluster.metrics.jobs import JOBS
from cluster.metrics.kept import known
from cluster.metrics.own import RULES
from components.monitoring.dashboards import DASHBOARDS
from components.monitoring.dashboards.model import Dashboard
from components.monitoring.grafana import grafana
from tests.monitoring.expressions import selectors
from tests.monitoring.test_alerts import labels_of
from tests.monitoring.test_rules import same_as_golden

EACH = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
UNITS = {
    *("short", "s", "bytes", "Bps", "ops", "reqps", "percentunit", "watt", "celsius", "hertz", "currencyUSD"),
}
"""Identifiers of Grafana (packages/grafana-data/src/valueFormats/categories.ts)."""


def test_there_is_a_dashboard_of_each_subject_with_its_own_address() -> None:
    assert [dashboard.uid.removeprefix("menagerie-") for dashboard in DASHBOARDS] == [
        *("fleet", "cluster", "etcd", "network", "gpu-host", "team")
    ]
    assert len({dashboard.title for dashboard in DASHBOARDS}) == len(DASHBOARDS)


@EACH
def test_every_panel_reads_known_metrics_and_names_its_lines_by_their_labels(dashboard: Dashboard) -> None:
    assert len({panel.title for panel in dashboard.panels}) == len(dashboard.panels)
    for panel in dashboard.panels:
        assert panel.unit in UNITS, panel.title
        for query in panel.queries:
            read = selectors(query.expr)
            assert {each.name for each in read} <= known() | set(RULES.samples()), panel.title
            labels = {label for each in read for label in labels_of(each.name)}
            assert set(re.findall(r"{{(\w+)}}", query.legend)) <= labels, panel.title


@EACH
def test_the_choices_of_a_dashboard_are_used_and_are_labels_of_their_metric(dashboard: Dashboard) -> None:
    text = " ".join(query.expr for panel in dashboard.panels for query in panel.queries)
    assert set(re.findall(r"\$(\w+)", text)) == {variable.name for variable in dashboard.variables}
    for variable in dashboard.variables:
        assert variable.label in labels_of(variable.metric)
        assert any(variable.metric in job.samples() for job in (*JOBS, RULES))


@EACH
def test_the_json_has_every_panel_with_its_queries_and_no_two_overlap(dashboard: Dashboard) -> None:
    document = grafana(dashboard)
    assert (document["uid"], document["title"]) == (dashboard.uid, dashboard.title)
    assert [panel["title"] for panel in document["panels"]] == [panel.title for panel in dashboard.panels]
    for panel, written in zip(dashboard.panels, document["panels"], strict=True):
        assert [target["expr"] for target in written["targets"]] == [query.expr for query in panel.queries]
        assert written["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    cells = [
        (column, row)
        for panel in document["panels"]
        for column in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for row in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(column for column, _ in cells) < 24


def test_a_dashboard_matches_the_golden_file() -> None:
    text = json.dumps(grafana(DASHBOARDS[-1]), indent=2, sort_keys=True) + "\n"
    assert same_as_golden("menagerie-team.json", text)
