"""The rule file of Prometheus, and Alertmanager's routes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cluster.load import load_cluster
from cluster.spec import Cluster
from components.monitoring import receivers, rules
from components.monitoring.alerts import groups, jobs, own
from components.monitoring.endpoints import endpoints, open_jobs

SPECS = Path(__file__).parents[1] / "specs"
GOLDEN = Path(__file__).parents[1] / "golden" / "monitoring"
RECEIVERS = {
    "receivers": {
        "oncall": {"url": "https://alerts.example.org/oncall", "severity": "critical"},
        "team": {"url": "https://alerts.example.org/team"},
    },
    "dead_mans_switch": "https://switch.example.org/1",
}


def same_as_golden(name: str, text: str) -> bool:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites the file; review the difference."""
    path = GOLDEN / name
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return text == path.read_text()


def names(cluster: Cluster, *, closed: bool = False) -> set[str]:
    return {alert.name for alerts in groups(cluster, closed=closed).values() for alert in alerts}


def test_the_rule_file_of_the_lab_matches_the_golden_file(lab: Cluster) -> None:
    assert same_as_golden("lab.rules.yaml", rules.text(lab, closed=True))


def test_the_receivers_of_a_cluster_match_the_golden_file(build: Callable[..., Cluster]) -> None:
    assert same_as_golden("lab.receivers.yaml", receivers.text(build({"monitoring": RECEIVERS})))


def test_every_rule_has_a_cluster_a_severity_and_a_first_command(lab: Cluster) -> None:
    document = yaml.safe_load(rules.text(lab, closed=True))
    alerts = [rule for group in document["groups"] for rule in group["rules"] if "alert" in rule]
    assert len(alerts) > 30
    for alert in alerts:
        assert alert["labels"]["cluster"] == lab.name
        assert alert["labels"]["severity"] in ("critical", "warning", "none")
        assert alert["annotations"]["first"].startswith("./menagerie ")
        assert "CLUSTER" not in alert["annotations"]["first"]
    assert len({group["name"] for group in document["groups"]}) == len(document["groups"])


def test_alerts_on_endpoints_that_nothing_reaches_are_left_out_and_named(lab: Cluster) -> None:
    """They would fire for no reason, or never."""
    assert {job.name for job in open_jobs(lab)} >= {"kubelet", "kube-state-metrics", "coredns", "controllers"}
    assert endpoints(lab)["node"].closed
    assert "NeighbourTableFull" in names(lab, closed=True) - names(lab)
    assert "NodeNotReady" in names(lab)
    head = [line for line in rules.text(lab).splitlines() if line.startswith("# Left out")]
    assert len(head) == 1
    assert "NeighbourTableFull" in head[0]
    assert not [line for line in rules.text(lab, closed=True).splitlines() if line.startswith("# Left out")]


def test_missing_jobs_are_those_that_prometheus_is_to_scrape(lab: Cluster) -> None:
    (missing, _) = groups(lab)["monitoring"]
    assert missing.name == "JobMissing"
    assert [f'absent(up{{job="{job}"}})' for job in jobs(lab)] == missing.expr.split(" or ")
    assert set(jobs(lab, closed=True)) - set(jobs(lab)) >= {"node", "konnectivity-agent"}
    assert set(jobs(lab)) >= {"etcd-main", "etcd-events", "kube-apiserver", "kube-scheduler"}


def test_alerts_on_the_control_plane_are_written_if_a_pool_can_have_a_host_for_the_scraper(
    build: Callable[..., Cluster], lab: Cluster
) -> None:
    assert {"ApiDown", "EtcdSlowDisk", "ControlLoopDown", "EtcdMemberDown"} <= names(lab)
    empty = build({"pools": {"workers": None}})
    assert endpoints(empty)["etcd-main"].closed.startswith("no relay runs")
    assert {"ApiDown", "EtcdSlowDisk"} & names(empty) == set()


def test_a_cluster_has_no_alert_on_what_it_lacks(lab: Cluster) -> None:
    """The lab has neither GPUs nor an autoscaler here, nor controllers."""
    assert names(lab, closed=True).isdisjoint({"GpuLost", "GpuMemoryWornOut", "AutoscalerStale", "ControllerStale"})
    with_autoscaler = load_cluster(SPECS / "valid-autoscaler.yaml")
    assert {"AutoscalerStale", "NoMachines"} <= names(with_autoscaler)


def test_the_limit_of_series_is_that_of_the_spec(build: Callable[..., Cluster]) -> None:
    (_, too_many) = groups(build({"monitoring": {"max_series": 1000}}))["monitoring"]
    assert too_many.expr == "sum(scrape_samples_post_metric_relabeling) > 900"


def test_a_site_with_ceph_adds_the_alerts_of_its_config_map() -> None:
    with_ceph = rules.rule_file(load_cluster(SPECS / "valid-ceph.yaml"))
    (group,) = [group for group in with_ceph["groups"] if group["name"].startswith("menagerie-ceph-")]
    assert "CephHealthError" in {rule["alert"] for rule in group["rules"]}


@pytest.mark.parametrize("settings", [{}, RECEIVERS])
def test_every_route_leads_to_a_receiver_and_the_switch_to_nobody_else(
    build: Callable[..., Cluster], settings: dict[str, object]
) -> None:
    document = receivers.configuration(build({"monitoring": settings}))
    known = {receiver["name"] for receiver in document["receivers"]}
    routes = document["route"]["routes"]
    assert {document["route"]["receiver"], *(route["receiver"] for route in routes)} == known
    switch = routes[0]
    assert f'alertname="{own.DEAD_MANS_SWITCH}"' in switch["matchers"]
    assert "continue" not in switch
    assert all(route["continue"] for route in routes[1:])


def test_a_receiver_of_critical_alerts_gets_no_warning(build: Callable[..., Cluster]) -> None:
    _, oncall, team = receivers.configuration(build({"monitoring": RECEIVERS}))["route"]["routes"]
    assert oncall["matchers"] == ['cluster="lab"', 'severity="critical"']
    assert team["matchers"] == ['cluster="lab"']
