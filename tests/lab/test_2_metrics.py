"""Metrics in the lab: of every node, of a node whose kubelet starts again, and of one whose certificate nobody approves."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import pytest
from kubernetes import client

from clients import config_maps
from clients.waiting import wait_until
from cluster.load import load_cluster
from components.control_plane.host.claims import HOSTS, KEY
from components.control_plane.serving import NAMESPACE
from operations.serving import publish_addresses
from operations.stack import access_to
from operations.status.metrics import YOUNG_S, metrics
from sandbox.lab.hosts import run as on_host
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

OTHER, STOPPED = "worker-1", "worker-2"
NOT_APPROVED = "request of its kubelet for a serving certificate is not approved"
SERVING = "/var/lib/kubelet/pki/kubelet-server-*.pem"


@pytest.fixture(scope="module")
def api(lab: Run) -> client.ApiClient:
    """API client of the operator."""
    return access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")).api()


Shown = dict[str, tuple[bool, str]]


def lines(api: client.ApiClient) -> Shown:
    """Return the lines of `status` about metrics. A whole `status` takes seconds of CPU."""
    cluster = load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")
    items = metrics(cluster, api, client.CoreV1Api(api).list_node().items)
    return {item.name: (item.ok, item.detail) for item in items}


def not_measured(shown: Shown) -> str:
    """Return the lines unless every node has metrics, else ""."""
    _, detail = shown.get("nodes", (False, "no line"))
    measured, _, of = detail.partition(" Ready nodes")[0].partition(" of ")
    return "" if list(shown) == ["nodes"] and measured == of else str(shown)


def all_measured(api: client.ApiClient) -> None:
    """Wait until every node has metrics."""
    wait_until(lambda: not_measured(lines(api)), 120, print, every_s=1)


def test_every_node_has_metrics(lab: Run, api: client.ApiClient) -> None:
    all_measured(api)
    items = menagerie("status", "lab", "--json").json["items"]
    shown = {item["name"]: (item["ok"], item["detail"]) for item in items if item["group"] == "metrics"}
    assert not not_measured(shown)


@dataclass(frozen=True)
class Looks:
    """What was seen while kubelets started. shown: lines of every second. asked: the stopped worker's requests at the end."""

    shown: list[Shown]
    asked: set[str]


@pytest.fixture(scope="module")
def looks(lab: Run, api: client.ApiClient) -> Looks:
    """Let two kubelets start again, and look until one is named: it has lost its certificate, and gets no other, because the
    cluster knows it by another address. Then give it its address back.
    """
    all_measured(api)
    existing = config_maps.read(api, NAMESPACE, HOSTS)
    assert existing is not None
    addresses = json.loads(existing.data[KEY])
    before, shown, began = requests(api), list[Shown](), time.monotonic()

    def not_named() -> str:
        shown.append(lines(api))
        return "" if NOT_APPROVED in shown[-1].get(STOPPED, (True, ""))[1] else str(shown[-1])

    try:
        config_maps.write(api, NAMESPACE, HOSTS, {KEY: json.dumps({**addresses, STOPPED: "10.78.250.1"})}, existing)
        on_host(OTHER, ["systemctl", "restart", "kubelet.service"])
        on_host(STOPPED, ["sh", "-c", f"rm -f {SERVING} && systemctl restart kubelet.service"])
        wait_until(not_named, YOUNG_S + 120, print, every_s=1)
        assert time.monotonic() - began >= YOUNG_S
        return Looks(shown, requests(api))
    finally:
        publish_addresses(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml"), api)
        for name in requests(api) - before:
            client.CertificatesV1Api(api).delete_certificate_signing_request(name)
        on_host(STOPPED, ["systemctl", "restart", "kubelet.service"])


def requests(api: client.ApiClient) -> set[str]:
    """Return the worker's requests for certificates."""
    listed = client.CertificatesV1Api(api).list_certificate_signing_request().items
    return {each.metadata.name for each in listed if each.spec.username == f"system:node:{STOPPED}"}


def test_a_kubelet_that_starts_again_is_no_problem(looks: Looks) -> None:
    bad = {name for shown in looks.shown for name, (ok, _) in shown.items() if not ok}
    assert bad == {STOPPED}


def test_a_node_whose_certificate_nobody_approves_is_named_and_the_others_have_metrics(looks: Looks) -> None:
    shown = looks.shown[-1]
    (name,) = looks.asked & set(shown[STOPPED][1].replace(",", " ").split())
    assert shown[STOPPED][1].endswith(f"is not approved: {name}")
    measured, _, of = shown["nodes"][1].partition(" Ready nodes")[0].partition(" of ")
    assert int(measured) == int(of) - 1


def test_the_node_has_metrics_again_when_its_certificate_is_approved(looks: Looks, api: client.ApiClient) -> None:
    wait_until(lambda: not_measured(lines(api)), 240, print, every_s=1)
