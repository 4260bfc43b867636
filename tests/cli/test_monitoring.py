"""`show monitoring`, `alerts`, `receivers` and `dashboards`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from cluster.metrics import sizes
from cluster.monitoring import MOST_SERIES
from tests.cli.conftest import EXAMPLES

IBIS = str(EXAMPLES / "ibis")


def test_sizes_are_shown_by_job_with_their_sum_and_the_keep_lists(menagerie):
    ran = menagerie("show", "monitoring", IBIS)
    assert ran.code == 0, ran.err
    assert f" series of {MOST_SERIES:,}; " in ran.out
    document = menagerie("show", "monitoring", IBIS, "--json").json
    assert document["series"] == sum(job["series"] for job in document["jobs"])
    assert document["memory_bytes"] == document["series"] * sizes.BYTES_OF_SERIES
    for job in document["jobs"]:
        assert (job["endpoints"] == 0) == (job["job"] == "rules")
        if job["endpoints"]:
            assert f"{job['job']}  {'|'.join(job['keep'])}" in ran.out
    assert "not reached: listens on 127.0.0.1 of its host" in ran.out


def test_alerts_are_a_rule_file_and_in_json_a_list_with_runbooks(menagerie):
    some = yaml.safe_load(menagerie("show", "alerts", IBIS).out)["groups"]
    every = yaml.safe_load(menagerie("show", "alerts", IBIS, "--all").out)["groups"]
    rules = [
        [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule] for groups in (some, every)
    ]
    assert set(rules[0]) < set(rules[1])
    document = menagerie("show", "alerts", IBIS, "--all", "--json").json
    assert sorted(alert["name"] for alert in document["alerts"]) == sorted(rules[1])
    for alert in document["alerts"]:
        assert Path(alert["runbook"]).is_file() or (EXAMPLES.parent / alert["runbook"]).is_file()
        assert "ibis" in alert["first"]


def test_routes_without_receivers_say_that_nobody_gets_alerts(menagerie):
    ran = menagerie("show", "receivers", IBIS)
    assert ran.code == 0
    assert yaml.safe_load(ran.out)["receivers"] == [{"name": "nobody"}]
    assert "send alerts to nobody" in ran.err


def test_dashboards_are_one_document_or_a_file_each(menagerie, tmp_path):
    documents = menagerie("show", "dashboards", IBIS).json["dashboards"]
    folder = tmp_path / "dashboards"
    ran = menagerie("show", "dashboards", IBIS, "-o", str(folder))
    assert ran.code == 0, ran.err
    written = {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}
    assert written == {document["uid"]: document for document in documents}
    assert menagerie("show", "dashboards", IBIS, "-o", str(folder)).code == 0


def test_a_file_of_another_kind_is_not_overwritten(menagerie, tmp_path):
    (tmp_path / "menagerie-team.json").write_text("{}")
    ran = menagerie("show", "dashboards", IBIS, "-o", str(tmp_path))
    assert ran.code == 2
    assert (tmp_path / "menagerie-team.json").read_text() == "{}"


def test_without_the_extra_dashboards_name_the_command_that_installs_it(menagerie, monkeypatch):
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk.builders", None)
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk", None)
    ran = menagerie("show", "dashboards", IBIS)
    assert ran.code != 0
    assert "'.[dashboards]'" in ran.err
    assert menagerie("show", "alerts", IBIS).code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("alerts",), "name a cluster"),
        (("flows", IBIS, "--all"), "--all is only for alerts"),
        (("dashboards", IBIS, "--json"), "dashboards has no --json"),
        (("alerts", IBIS, "-o", "x"), "--output is only for topology and dashboards"),
    ],
)
def test_options_of_other_subjects_are_refused(menagerie, words, why):
    ran = menagerie("show", *words)
    assert ran.code == 2
    assert why in " ".join(ran.err.replace("│", " ").split())


def test_nothing_is_shown_of_a_cluster_whose_monitoring_is_off(menagerie, tmp_path):
    spec = (EXAMPLES / "ibis" / "cluster.yaml").read_text() + "\nmonitoring: {enabled: false}\n"
    (tmp_path / "ibis").mkdir()
    for file in (EXAMPLES / "ibis").iterdir():
        (tmp_path / "ibis" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "ibis" / "cluster.yaml").write_text(spec)
    for subject in ("monitoring", "alerts", "receivers", "dashboards"):
        ran = menagerie("show", subject, str(tmp_path / "ibis"))
        assert (ran.code, ran.out) == (2, "")
        assert "monitoring.enabled is false" in ran.err
