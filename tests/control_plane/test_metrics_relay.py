"""The relay of metrics on API servers, and the scraper: their rights, keys and names fit together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from cluster.files import HostConfig
from cluster.metrics import relay
from cluster.metrics.host import relay as program
from cluster.spec import Cluster
from components.control_plane import (
    controller_manager,
    host_config,
    konnectivity,
    kube_apiserver,
    manifests,
    metrics_relay,
    scheduler,
    scraper,
)
from components.control_plane.service_unit import render
from network.addresses import plan


def rules(lab: Cluster, name: str) -> list[dict[str, Any]]:
    objects = manifests.objects(lab, plan(lab))
    (role,) = [each for each in objects if each["kind"] == "ClusterRole" and each["metadata"]["name"] == name]
    (binding,) = [each for each in objects if each["metadata"]["name"] == name and "subjects" in each]
    assert [(each["kind"], each["name"]) for each in binding["subjects"]] == [("User", name)]
    return list(role["rules"])


def test_the_relay_may_read_metrics_of_components_and_nothing_else(lab: Cluster) -> None:
    assert rules(lab, metrics_relay.USER) == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_the_scraper_may_read_metrics_of_components_and_kubelets_and_nothing_else(lab: Cluster) -> None:
    assert rules(lab, scraper.USER) == [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    (role, binding) = [
        each
        for each in manifests.objects(lab, plan(lab))
        if scraper.USER in (each["metadata"]["name"], *(s["name"] for s in each.get("subjects", ())))
    ]
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")


def test_the_relay_asks_each_component_where_it_listens(lab: Cluster, config: HostConfig) -> None:
    text = next(file.text for file in config.files if file.path == metrics_relay.SETTINGS)
    upstreams = {job: urlsplit(url) for job, url in json.loads(text)["upstreams"].items()}
    assert {url.hostname for url in upstreams.values()} == {"127.0.0.1"}
    # Ports without a flag are Kubernetes' and konnectivity's defaults; tests/flows has them, too.
    flags = {
        "kube-apiserver": kube_apiserver.flags(lab, plan(lab))["secure-port"],
        "kube-scheduler": scheduler.flags(lab).get("secure-port", "10259"),
        "kube-controller-manager": controller_manager.flags(lab).get("secure-port", "10257"),
        "konnectivity-server": konnectivity.flags(lab, "").get("admin-port", "8095"),
    }
    assert {job: str(url.port) for job, url in upstreams.items()} == flags
    assert {url.path for url in upstreams.values()} == {"/metrics"}


def test_components_that_are_not_verified_have_no_certificate_that_anything_signed(
    lab: Cluster, config: HostConfig
) -> None:
    text = next(file.text for file in config.files if file.path == metrics_relay.SETTINGS)
    assert json.loads(text)["unverified"] == ["kube-scheduler", "kube-controller-manager"]
    for flags in (scheduler.flags(lab), controller_manager.flags(lab)):
        assert "tls-cert-file" not in flags
        assert flags["bind-address"] == "127.0.0.1"
    assert "tls-cert-file" in kube_apiserver.flags(lab, plan(lab))


def test_the_relay_has_no_key_of_anything_else(lab: Cluster, config: HostConfig) -> None:
    unit = metrics_relay.unit()
    assert unit.user == relay.NAME
    keys = [path for _, path in unit.credentials if path.endswith((".key", ".conf"))]
    assert keys == ["/etc/kubernetes/metrics-relay.conf", "/etc/kubernetes/pki/metrics-relay.key"]
    others = [each for each in config.files if each.path.endswith(".service") and "metrics-relay" not in each.path]
    assert not [each.path for each in others if "metrics-relay.key" in each.text]
    assert {path for _, path in unit.credentials} == set(metrics_relay.consumer().paths)
    assert "\nMemoryMax=128M\n" in render(unit)


def test_names_of_credentials_are_those_that_the_program_opens() -> None:
    names = {name for name, _ in metrics_relay.unit().credentials}
    source = program.__file__
    with open(source) as file:
        text = file.read()
    assert all(f'"{name}"' in text for name in names)
    assert len(names) == 4


def test_without_a_scraper_no_relay_runs_and_no_slice_is_written(build: Callable[..., Cluster], source: Any) -> None:
    cluster = build({"monitoring": {"enabled": False}})
    config = host_config(cluster, plan(cluster), source)
    assert metrics_relay.UNIT not in config.start
    settings = json.loads(next(file.text for file in config.files if file.path.endswith("host.json")))
    assert "relay_port" not in settings
    assert metrics_relay.NAME not in settings["users"]
    assert not [each for each in config.secrets if "metrics-relay" in each.path]


@pytest.mark.parametrize("name", ["Secret", "ConfigMap"])
def test_no_manifest_has_a_key_or_an_authority(lab: Cluster, name: str) -> None:
    """They are in user data. `metrics-keys` writes keys."""
    of_it = [each for each in scraper.objects() if each["kind"] == name]
    assert of_it == []
