"""Prometheus and Alertmanager read what `show` prints, and each alert fires on bad samples and not on good ones.

promtool and amtool are those of the pinned versions, with the parsers and the engine of the programs themselves.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.load import load_cluster
from cluster.spec import Cluster
from components.ceph import alerts as ceph
from components.control_plane.objects import Object
from components.monitoring import receivers, rules
from components.monitoring.alert import Alert
from components.monitoring.alerts import GROUPS, own
from components.monitoring.dashboards import DASHBOARDS
from tests.monitoring.cases import CONTROL_PLANE, ETCDS, GPUS, Case, Series
from tests.monitoring.cases_of_ceph import CEPH
from tests.monitoring.cases_of_nodes import NODES, OWN
from tests.monitoring.test_rules import RECEIVERS, SPECS
from tests.programs import PROGRAMS, needs

CASES = (*CONTROL_PLANE, *ETCDS, *GPUS, *NODES, *OWN, *CEPH)
CLUSTERS = sorted(SPECS.glob("valid-*.yaml"))


def run(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS[program]), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def output_of(program: str, *words: object) -> str:
    """Return what a program prints; its messages if it fails."""
    done = run(program, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs(["promtool"])
def test_promtool_reads_the_rules_of_every_cluster(tmp_path: Path) -> None:
    files = []
    for spec in CLUSTERS:
        for closed in (False, True):
            files.append(tmp_path / f"{spec.stem}-{closed}.yaml")
            files[-1].write_text(rules.text(load_cluster(spec), closed=closed))
    assert output_of("promtool", "check", "rules", *files).count("SUCCESS") == len(files) == 2 * len(CLUSTERS)


@needs(["promtool"])
def test_promtool_refuses_rules_that_prometheus_could_not_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "a", "rules": [{"alert": "B", "expr": "rate(up)"}]}]}))
    assert "expected type range vector" in run("promtool", "check", "rules", file).stderr


@needs(["promtool"])
def test_promtool_reads_the_expression_of_every_panel(tmp_path: Path) -> None:
    panels = [
        (dashboard.uid, query.expr) for dashboard in DASHBOARDS for panel in dashboard.panels for query in panel.queries
    ]
    recorded = [{"record": f"panel:{number}", "expr": text} for number, (_, text) in enumerate(panels)]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    assert f"SUCCESS: {len(panels)} rules found" in output_of("promtool", "check", "rules", file)


@needs(["amtool"])
@pytest.mark.parametrize("settings", [{}, RECEIVERS])
def test_amtool_reads_the_receivers_of_a_cluster(
    build: Callable[..., Cluster], tmp_path: Path, settings: dict[str, Any]
) -> None:
    file = tmp_path / "alertmanager.yaml"
    file.write_text(receivers.text(build({"monitoring": settings})))
    assert "SUCCESS" in output_of("amtool", "check-config", file)


@needs(["amtool"])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"cluster": "lab", "severity": "critical", "alertname": "ApiDown"}, "oncall,team"),
        ({"cluster": "lab", "severity": "warning", "alertname": "NodeNotReady"}, "team"),
        ({"cluster": "lab", "severity": "none", "alertname": own.DEAD_MANS_SWITCH}, "dead-mans-switch"),
        ({"cluster": "other", "severity": "critical", "alertname": "ApiDown"}, "nobody"),
    ],
)
def test_alertmanager_routes_an_alert_to_the_receivers_of_its_severity(
    build: Callable[..., Cluster], tmp_path: Path, labels: dict[str, str], expected: str
) -> None:
    file = tmp_path / "alertmanager.yaml"
    file.write_text(receivers.text(build({"monitoring": RECEIVERS})))
    words = [f"{name}={value}" for name, value in labels.items()]
    assert output_of("amtool", "config", "routes", "test", f"--config.file={file}", *words).strip() == expected


def alerting() -> dict[str, Object]:
    """Return alert -> its rule, of all alerts."""
    every: list[Alert] = [alert for alerts in GROUPS.values() for alert in alerts]
    every += [own.missing(["node", "kubelet"]), own.too_many(4_000_000)]
    made = [rules.rule(alert, "jaguar") for alert in every]
    site = load_cluster(SPECS / "valid-ceph.yaml").spec.sites["sjc1"]
    assert site.ceph
    return {rule["alert"]: rule for rule in (*made, *ceph.groups(site.ceph)["groups"][0]["rules"])}


def test_every_alert_has_samples_with_which_it_fires() -> None:
    assert {case.alert for case in CASES} == set(alerting())
    assert {case.alert for case in CASES if case.good is not None} == set(alerting()) - {own.DEAD_MANS_SWITCH}


def _tests(case: Case, rule: Object) -> Iterator[Object]:
    """Yield the tests of promtool for a case: it fires as expected, and not before its time or with the good samples."""
    fires = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {**rule["annotations"], "summary": case.says},
    }
    holds = 0 if "for" not in rule else int(rule["for"][:-1]) * (60 if rule["for"][-1] == "h" else 1)
    before: list[tuple[int, list[Object]]] = [(holds - 1, [])] if holds else []
    yield _test(f"{case.alert} fires", case.alert, case.bad, [*before, (case.at, [fires])])
    if case.good is not None:
        yield _test(f"{case.alert} is silent", case.alert, case.good, [(case.at, []), (case.at + 20, [])])


def _test(name: str, alert: str, series: Series, expected: list[tuple[int, list[Object]]]) -> Object:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": alerts} for minute, alerts in expected
        ],
    }


def tried(folder: Path, cases: Iterable[Case], made: dict[str, Object]) -> subprocess.CompletedProcess[str]:
    """Run cases by promtool. Each alert has a file of its own: a test evaluates all rules of its file each minute."""
    files = []
    for name in dict.fromkeys(case.alert for case in cases):
        group = {"name": name, "interval": "1m", "rules": [made[name]]}
        (folder / f"{name}.rules.yaml").write_text(yaml.safe_dump({"groups": [group]}))
        tests = [test for case in cases if case.alert == name for test in _tests(case, made[name])]
        document = {"rule_files": [f"{name}.rules.yaml"], "evaluation_interval": "1m", "tests": tests}
        files.append(folder / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump(document))
    return run("promtool", "test", "rules", *files)


@needs(["promtool"])
def test_each_alert_fires_on_bad_samples_and_is_silent_before_its_time_and_on_good_ones(tmp_path: Path) -> None:
    done = tried(tmp_path, CASES, alerting())
    assert done.returncode == 0, done.stdout + done.stderr


@needs(["promtool"])
def test_an_alert_that_does_not_fire_as_its_samples_say_is_noticed(tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.alert == "ApiServerDown"]
    made = alerting()
    made["ApiServerDown"] = {**made["ApiServerDown"], "expr": 'up{job="kube-apiserver"} == 2'}
    done = tried(tmp_path, (case,), made)
    assert done.returncode != 0
    assert "ApiServerDown fires" in done.stdout + done.stderr
