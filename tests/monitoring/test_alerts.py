"""Alerts name metrics and labels that exist, and lead to a runbook whose first command is a verb."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest

from cli.verbs import table as verbs
from cluster.metrics.jobs import BY_NAME, JOBS
from cluster.metrics.kept import known
from cluster.metrics.own import RULES, SCRAPES
from cluster.monitoring import Severity
from components.monitoring.alert import Alert
from components.monitoring.alerts import GROUPS, own
from components.monitoring.recording import RECORDINGS
from tests.cli import pages
from tests.cli.pages import ROOT
from tests.monitoring.expressions import every, grouping, of_rules, results, selectors

ALERTS = [
    *(alert for alerts in GROUPS.values() for alert in alerts),
    own.missing([job.name for job in JOBS]),
    own.too_many(4_000_000),
]
OF_SCRAPES = {"job", "instance", "cluster", *(label for job in JOBS for label in job.labels)}
"""Labels that every series can have in addition to its metric's."""
EACH = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def labels_of(name: str) -> frozenset[str]:
    """Return the labels of a metric, in whichever job it is."""
    each = [job.samples()[name][0].labels for job in (*JOBS, RULES) if name in job.samples()]
    return frozenset(label for labels in each for label in labels) | OF_SCRAPES


@pytest.mark.parametrize("text", every())
def test_an_expression_parses_and_names_metrics_and_labels_of_the_catalogues(text: str) -> None:
    read = selectors(text)
    assert {each.name for each in read} - known() - set(RULES.samples()) == set()
    for each in read:
        assert each.labels - labels_of(each.name) == set(), each.name
        assert set(each.jobs.split("|") if each.jobs else ()) <= set(BY_NAME)
    assert grouping(text) - {label for each in read for label in labels_of(each.name)} == set()


def test_a_metric_that_no_exporter_has_is_noticed() -> None:
    (selector,) = set(selectors("sum by (nodes) (rate(node_networks_total[5m]))"))
    assert selector.name not in known()
    assert grouping("sum by (nodes) (node_load1)") - labels_of("node_load1") == {"nodes"}
    with pytest.raises(ValueError, match="expected type matrix"):
        selectors("rate(node_load1)")


@EACH
def test_an_alert_names_the_jobs_that_it_reads(alert: Alert) -> None:
    """`up` is a metric of every job, so only its matcher says which."""
    read = set(selectors(alert.expr))
    of_scrapes = {metric.name for metric in SCRAPES.metrics}
    for each in read if alert.jobs else ():
        with_it = {job.name for job in JOBS if each.name in (of_scrapes if each.name in of_scrapes else job.samples())}
        assert with_it & set(alert.jobs), each.name
        assert set(each.jobs.split("|") if each.jobs else alert.jobs) <= set(alert.jobs)
    for job in alert.jobs:
        names = of_scrapes | set(BY_NAME[job].samples())
        assert any(each.name in names and job in (each.jobs or job).split("|") for each in read)


@EACH
def test_the_message_of_an_alert_uses_labels_that_its_results_have(alert: Alert) -> None:
    shown = set(re.findall(r"\$labels\.(\w+)", alert.says))
    assert shown <= results(promql_parser.parse(alert.expr), labels_of)
    assert alert.says.endswith(".")
    assert alert.means.endswith(".")


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("sum by (job) (up) > 1", {"job"}),
        ("absent(sum(up))", set()),
        ('absent(up{job="node"} == 1)', set()),
        ('absent(up{job="node", instance=~"a|b"})', {"job"}),
        ("sum by (job) (up) and on (node) up", {"job"}),
        ("up / on (job) scrape_samples_scraped", {"job"}),
        ("topk(3, sum by (code) (apiserver_request_total))", {"code"}),
        ("sum by (node) (up) * on (node) group_left (device) node_network_up", {"node", "device"}),
        ("sum by (node) (up) or sum by (job) (up)", {"node", "job"}),
    ],
)
def test_labels_of_results_follow_the_operators(text: str, labels: set[str]) -> None:
    assert results(promql_parser.parse(text), labels_of) == labels


@EACH
def test_the_runbook_of_an_alert_begins_with_the_alert_s_command(alert: Alert) -> None:
    page = ROOT / alert.page
    first = next(pages.commands(page))
    assert " ".join(first.words) == alert.command("jaguar")
    assert verbs.chosen(first.words[1:]) is not None


def test_names_are_unique_and_thresholds_wait_for_a_scrape() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    assert all(re.fullmatch(r"[1-9]\d*[mh]", alert.holds) for alert in ALERTS if alert.name != own.DEAD_MANS_SWITCH)


def test_few_alerts_are_critical_and_one_is_for_nobody() -> None:
    by_severity = {severity: [a.name for a in ALERTS if a.severity is severity] for severity in (*Severity, None)}
    assert by_severity[None] == [own.DEAD_MANS_SWITCH]
    assert len(by_severity[Severity.CRITICAL]) < 12
    assert len(ALERTS) < 41


def test_recording_rules_are_counted_and_read_by_a_dashboard_only() -> None:
    assert {each.name for each in RECORDINGS} == set(RULES.samples())
    read = {each.name for text in every() for each in selectors(text)}
    assert {each.name for each in RECORDINGS} <= read
    assert {each.name for text in of_rules() for each in selectors(text)} & set(RULES.samples()) == set()
    for each in RECORDINGS:
        assert results(promql_parser.parse(each.expr), labels_of) == {"namespace"}


def test_new_runbooks_name_the_alerts_that_lead_to_them() -> None:
    """Older pages are found by what `status` says, and their symptoms have no names of alerts."""
    for alert in ALERTS:
        text = (ROOT / alert.page).read_text()
        if "- Alert" in text:
            assert f"`{alert.name}`" in text or alert.severity is None, f"{alert.page} lacks {alert.name}"


def test_the_index_leads_to_every_runbook_of_an_alert() -> None:
    index = (ROOT / "docs/runbooks/index.md").read_text()
    assert {alert.runbook for alert in ALERTS} - set(re.findall(r"\(([\w-]+)\.md", index)) == set()


def test_no_page_of_a_runbook_is_only_for_an_alert_that_was_removed() -> None:
    named = {path.stem for path in Path(ROOT / "docs/runbooks").glob("*.md") if "- Alert" in path.read_text()}
    assert named <= {alert.runbook for alert in ALERTS}
