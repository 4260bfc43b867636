"""`menagerie upgrade`: back to the previous release and up again, under a workload with a budget and constant requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from cluster import versions
from cluster.artefacts import KUBERNETES_PROGRAMS
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from sandbox.lab import hosts, releases
from tests.bench import on_lab
from tests.lab.probe import Probe, probing
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]

OLD, NEW = versions.KUBERNETES_BEFORE, versions.KUBERNETES
CLIENT_HOST = "worker-1"
REQUESTS = 1000
"""Minimum in each direction; none of them is lost."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    if OLD not in releases.built((*KUBERNETES_PROGRAMS, "kube-proxy")):
        names = " ".join(f"{name}@{OLD}" for name in (*KUBERNETES_PROGRAMS, "kube-proxy"))
        pytest.skip(f"Kubernetes {OLD} was not built, which takes minutes: .venv/bin/python -m tools {names}")


def without_gangs(spec: Any) -> None:
    """Remove gangs, which the previous release does not have."""
    assert spec["kubernetes"]["version"] == NEW
    del spec["scheduling"]["gangs"]


@pytest.fixture(scope="module")
def newer(lab: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The lab's spec without gangs, applied to the lab; restores the lab afterwards."""
    path = str(on_lab.changed(tmp_path_factory.mktemp("newer"), without_gangs))
    assert menagerie("up", path, "--yes", timeout_s=1200).code == 0
    assert menagerie("etcd", "backup", "lab", "main").code == 0
    yield path
    assert menagerie("up", "lab", "--yes", timeout_s=1200).code == 0


@pytest.fixture(scope="module")
def older(newer: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with the previous release; the path takes the place of the file that an operator edits."""

    def older(spec: Any) -> None:
        without_gangs(spec)
        spec["kubernetes"]["version"] = OLD

    return str(on_lab.changed(tmp_path_factory.mktemp("older"), older))


@pytest.fixture(scope="module")
def api(lab: Run) -> client.ApiClient:
    return access_to(load_cluster(find_cluster("lab", ROOT))).api()


@pytest.fixture
def probe(api: client.ApiClient) -> Iterator[Probe]:
    with probing(api, hosts.inside(CLIENT_HOST, [])) as running_probe:
        yield running_probe


def kubelets(api: client.ApiClient) -> set[str]:
    return {node.status.node_info.kubelet_version for node in client.CoreV1Api(api).list_node().items}


def server_versions(path: str) -> set[str]:
    """Return the versions of API servers, kube-proxy and nodes, as the verb reports them."""
    dry_run = menagerie("upgrade", path, "--dry-run", "--json")
    assert dry_run.code == 0, dry_run.err
    running = dry_run.json["running"]
    return {
        *running["hosts"].values(),
        *running["answers"],
        running["proxy"],
        running["said"],
        *(node["kubelet"] for node in running["nodes"].values()),
    }


def test_up_refuses_another_release_and_changes_nothing(newer: str, older: str) -> None:
    refused = menagerie("up", older, "--yes")
    assert refused.code == 2
    assert "menagerie upgrade lab" in refused.err
    assert server_versions(newer) == {NEW}


def test_back_and_up_again_under_a_workload(newer: str, older: str, api: client.ApiClient, probe: Probe) -> None:
    marked = client.CoreV1Api(api).create_namespaced_config_map(
        "default", {"metadata": {"name": "kept"}, "data": {"a": "b"}}
    )
    back = menagerie("upgrade", older, "--json", timeout_s=1800)
    assert back.code == 0, back.err
    assert back.json["stages"] == ["workers at sites", "workers in the region", "kube-proxy", "API servers"]
    assert server_versions(older) == {OLD}
    requests_back, lost_back = probe.requests, probe.failures[:]
    cut = menagerie("upgrade", newer, "--yes", timeout_s=1800, interrupt_after_s=60)
    assert cut.code in (0, 130), cut.err
    up = menagerie("upgrade", newer, "--json", timeout_s=1800)
    assert up.code == 0, up.err
    assert server_versions(newer) == {NEW}
    assert kubelets(api) == {f"v{NEW}"}
    config_map = client.CoreV1Api(api).read_namespaced_config_map("kept", "default")
    assert (config_map.metadata.uid, config_map.data) == (marked.metadata.uid, {"a": "b"})
    assert requests_back >= REQUESTS, lost_back
    assert probe.requests - requests_back >= REQUESTS
    assert probe.failures == []


def test_afterwards_the_cluster_is_healthy_and_up_has_nothing_to_do(newer: str) -> None:
    status = menagerie("status", newer, "--json")
    assert status.code == 0, status.out
    preview = menagerie("up", newer, "--dry-run", "--json")
    assert (preview.code, preview.json["changed"]) == (0, 0), preview.err
