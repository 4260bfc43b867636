"""Real API servers of both releases on one etcd: each reads what the other writes, and what clients use."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from kubernetes import client

from cluster import versions
from cluster.releases import ADDED, EARLY, NodePrograms, minor
from cluster.spec import Cluster
from operations.drain import DrainMark, Rules, cordon
from operations.status import StatusItem
from operations.upgrade import addons, parts, preflight
from operations.upgrade import versions as found_versions
from operations.upgrade.guard import other_workers
from operations.upgrade.parts import RunningVersions
from operations.upgrade.plan import UpgradePlan, plan
from operations.upgrade.preflight import PreflightInputs, deprecated, findings
from tests.control_plane.real_api import TOKEN, RealApi, serving, storing
from tests.programs import program
from tools import manifest

# Servers generated their certificates themselves a second ago.
pytestmark = [
    pytest.mark.soak,  # this builds the previous release
    pytest.mark.xdist_group("releases"),
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),
]
OLD, NEW = versions.KUBERNETES_BEFORE, versions.KUBERNETES
SAID = f"apiServer: {{}}\nkind: ClusterConfiguration\nkubernetesVersion: v{OLD}\nnetworking: {{}}\n"


def of(version: str) -> Callable[[str], Path]:
    """Return the programs of a release; skip the test if they are not built."""
    return lambda name: program(manifest.at(name, version) if name.startswith("kube") else name)


@dataclass
class Server:
    """Access to an API server like `clients.access.Access`: over TLS, but with a token instead of a certificate."""

    api_server: RealApi
    folder: Path
    outputs: Any = field(default_factory=lambda: SimpleNamespace(api_servers=(), load_balancer_status=None, etcds={}))

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.api_server.port}"

    def api(self) -> client.ApiClient:
        configuration = client.Configuration(host=self.server)
        configuration.verify_ssl = False
        configuration.api_key = {"authorization": f"Bearer {TOKEN}"}
        return client.ApiClient(configuration)

    def ask(self, paths: tuple[str, ...], server: str = "", accept: str = "*/*") -> list[str]:
        pool = urllib3.PoolManager(cert_reqs="CERT_NONE", retries=False)
        # The load balancer's probe names etcd events, which does not exist here.
        plain_paths = [path.partition("?")[0] for path in paths]
        headers = {"authorization": f"Bearer {TOKEN}", "accept": accept}
        return [pool.request("GET", f"{self.server}{path}", headers=headers).data.decode() for path in plain_paths]


@contextmanager
def running(version: str, etcd: str, folder: Path) -> Iterator[Server]:
    folder.mkdir(exist_ok=True)
    early = [f"--{name}={value}" for name, value in EARLY.get(minor(version), {}).items()]
    with serving(of(version), folder, "--etcd-servers", etcd, *early) as api:
        yield Server(api, folder)


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with storing(program, tmp_path_factory.mktemp("etcd")) as url:
        yield url


@pytest.fixture(scope="module")
def older(etcd: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(OLD, etcd, tmp_path_factory.mktemp("older")) as made:
        yield made


@pytest.fixture(scope="module")
def newer(older: Server, etcd: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(NEW, etcd, tmp_path_factory.mktemp("newer")) as made:
        yield made


OBJECTS: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces/default/configmaps": {"data": {"a": "b"}},
    "/apis/apps/v1/namespaces/default/deployments": {
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
    },
    "/apis/batch/v1/namespaces/default/cronjobs": {
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
            },
        }
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    },
    "/apis/storage.k8s.io/v1/volumeattributesclasses": {"driverName": "d.example", "parameters": {"a": "b"}},
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies": {"spec": {"podSelector": {}}},
    "/apis/resource.k8s.io/v1/deviceclasses": {"spec": {}},
}


def write(server: Server, name: str) -> None:
    for path, body in OBJECTS.items():
        status, answer = server.api_server.call("POST", path, {"metadata": {"name": name}, **body})
        assert status == 201, (path, answer)


def read(server: Server, name: str) -> dict[str, Any]:
    objects = {}
    for path in OBJECTS:
        status, answer = server.api_server.call("GET", f"{path}/{name}")
        assert status == 200, (path, answer)
        objects[path] = {
            key: value for key, value in answer.items() if key in ("spec", "data", "driverName", "parameters")
        }
    return objects


def test_both_releases_serve_one_etcd_and_read_each_others_objects(older: Server, newer: Server) -> None:
    assert (found_versions.servers(older), found_versions.servers(newer)) == ({OLD}, {NEW})  # type: ignore[arg-type]
    write(older, "of-the-older")
    write(newer, "of-the-newer")
    for name in ("of-the-older", "of-the-newer"):
        assert read(older, name) == read(newer, name)


def test_data_written_during_an_upgrade_is_readable_after_a_rollback(older: Server, newer: Server, etcd: str) -> None:
    write(newer, "on-the-way")
    before = read(newer, "on-the-way")
    folder = older.folder.with_name("back")
    with running(OLD, etcd, folder) as back:
        assert read(back, "on-the-way") == before


def test_the_table_has_what_the_newer_release_adds(older: Server, newer: Server) -> None:
    def served(server: Server) -> dict[tuple[str, str, str], str]:
        hashes = {}
        for group in server.api_server.call("GET", "/apis")[1]["groups"]:
            for each in group["versions"]:
                for resource in server.api_server.call("GET", f"/apis/{each['groupVersion']}")[1]["resources"]:
                    if "/" not in resource["name"]:
                        key = (group["name"], each["version"], resource["name"])
                        hashes[key] = resource.get("storageVersionHash", "")
        return hashes

    before, after = served(older), served(newer)
    # Both read what both serve, in any version.
    both = {(group, resource) for group, _, resource in before}
    assert sorted(key for key in set(after) - set(before) if (key[0], key[2]) not in both) == sorted(ADDED["1.36"])
    # The first 8 bytes of SHA-256 over group/version/kind (apiserver, discovery.StorageVersionHash).
    kinds = {
        base64.b64encode(hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()
        for group, version, kind in _kinds(older)
    }
    changed = {key for key in after if key in before and after[key] != before[key]}
    assert {after[key] for key in changed} <= kinds, "stored in a version that the older release does not serve"


def _kinds(server: Server) -> Iterator[tuple[str, str, str]]:
    for group in server.api_server.call("GET", "/apis")[1]["groups"]:
        for each in group["versions"]:
            for resource in server.api_server.call("GET", f"/apis/{each['groupVersion']}")[1]["resources"]:
                yield group["name"], each["version"], resource["kind"]


@pytest.fixture
def well(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[StatusItem]], None]:
    """Replace `status`, because there are neither nodes nor add-ons here."""

    def sees(items: list[StatusItem]) -> None:
        monkeypatch.setattr(preflight, "running", lambda cluster, access: tuple(items))

    sees([])
    return sees


def planned(build: Callable[..., Cluster], now: str, target: str, **more: Any) -> UpgradePlan:
    running = RunningVersions({}, frozenset({now}), now, now, **more)
    return plan(build({"kubernetes": {"version": target}}), running)


def kubelet(version: str) -> NodePrograms:
    return NodePrograms(version, versions.CONTAINERD)


def look(build: Callable[..., Cluster], server: Server, made: UpgradePlan, **more: Any) -> list[str]:
    cluster = build({"kubernetes": {"version": made.target}})
    return findings(PreflightInputs(cluster, server, made, Rules(), **more))  # type: ignore[arg-type]


POLICY = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"


@pytest.mark.usefixtures("well")
def test_objects_that_only_the_newer_release_knows_block_a_rollback(
    build: Callable[..., Cluster], older: Server, newer: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Act as if our API servers of the older release enabled nothing early."""
    resource = ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies")
    monkeypatch.setattr(preflight, "ADDED", {"1.36": (resource,)})
    back = planned(build, NEW, OLD)
    assert look(build, newer, back) == []
    spec = {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/data/x", value: "y"}]'},
            }
        ],
    }
    status, answer = newer.api_server.call("POST", POLICY, {"metadata": {"name": "mine"}, "spec": spec})
    assert status == 201, answer
    try:
        (problem,) = look(build, newer, back)
        assert "does not have mutatingadmissionpolicies.v1.admissionregistration.k8s.io" in problem
        assert "mine" in problem
        assert older.api_server.call("GET", f"{POLICY}/mine")[0] == 404
        assert (
            older.api_server.call("GET", f"{POLICY.replace('v1', 'v1beta1')}/mine")[1]["spec"]["mutations"]
            == spec["mutations"]
        )
        assert look(build, older, planned(build, OLD, NEW)) == []
    finally:
        newer.api_server.call("DELETE", f"{POLICY}/mine")


def test_the_metric_of_deprecated_apis_is_read_from_a_real_server(newer: Server) -> None:
    (text,) = newer.ask(("/metrics",))
    before = deprecated(text)
    assert newer.api_server.call("GET", "/api/v1/componentstatuses")[0] == 200
    (text,) = newer.ask(("/metrics",))
    assert deprecated(text) - before == {("", "v1", "componentstatuses", "")}


@pytest.mark.usefixtures("well")
def test_the_use_of_an_api_that_the_target_release_removes_blocks_the_upgrade(
    build: Callable[..., Cluster], older: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (
        'apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="%s",'
        'resource="flowschemas",subresource="",version="v1beta3"} 1'
    )
    for removed, expected in (("1.36", 1), ("1.37", 0), ("1.30", 1), ("", 0)):
        monkeypatch.setattr(found_versions, "metrics", lambda access, text=line % removed: [text])
        problems = look(build, older, planned(build, OLD, NEW))
        assert len(problems) == expected
        assert all("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io" in each for each in problems)


def test_all_blockers_are_reported_at_once(
    build: Callable[..., Cluster], older: Server, well: Callable[[list[StatusItem]], None]
) -> None:
    well([StatusItem("etcds", "etcd-main-2", False, "no answer"), StatusItem("nodes", "worker-1", True, "")])
    api = older.api()
    core = client.CoreV1Api(api)
    for name in ("worker-1", "worker-2"):
        core.create_node({"metadata": {"name": name}})
    cordon(api, "worker-1", DrainMark("reboot", "for a test"))
    pod = {"spec": {"nodeName": "worker-2", "containers": [{"name": "c", "image": "i"}]}}
    core.create_namespaced_pod("default", {"metadata": {"name": "alone"}, **pod})
    try:
        made = planned(build, OLD, NEW, nodes={"worker-1": kubelet(OLD), "worker-2": kubelet("1.32.9")})
        problems = look(build, older, made, backup_age=lambda: 7200.0)
    finally:
        core.delete_namespaced_pod("alone", "default", grace_period_seconds=0)
        core.delete_collection_node()
    expected = (
        "node worker-2: kubelet 1.32.9 is 4 minor versions from kube-apiserver 1.36",
        "the cluster is unhealthy: etcd-main-2: no answer",
        "node worker-1 has been out of service since",
        "node worker-2: pod default/alone: it has no controller that would recreate it elsewhere",
        "the newest backup of etcd main is 120 minutes old",
    )
    assert len(problems) == len(expected)
    assert all(any(text in each for each in problems) for text in expected), problems


@pytest.mark.usefixtures("well")
def test_a_budget_that_allows_no_eviction_is_reported(build: Callable[..., Cluster], older: Server) -> None:
    core, policy = client.CoreV1Api(older.api()), client.PolicyV1Api(older.api())
    spec = {"nodeName": "worker-1", "containers": [{"name": "c", "image": "i"}]}
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
    metadata = {"name": "kept", "labels": {"app": "kept"}, "ownerReferences": owner}
    core.create_namespaced_pod("default", {"metadata": metadata, "spec": spec})
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["kept"]}]}
    body = {"metadata": {"name": "tight"}, "spec": {"minAvailable": 2, "selector": selector}}
    made = policy.create_namespaced_pod_disruption_budget("default", body)
    status = {"currentHealthy": 2, "desiredHealthy": 2, "disruptionsAllowed": 0, "expectedPods": 2}
    status["observedGeneration"] = made.metadata.generation
    policy.patch_namespaced_pod_disruption_budget_status("tight", "default", {"status": status})
    try:
        concerned = planned(build, OLD, NEW, nodes={"worker-1": kubelet(OLD)})
        (problem,) = look(build, older, concerned)
        assert problem.startswith("budget default/tight never allows an eviction: it requires 2 of its 2 pods")
        assert look(build, older, planned(build, OLD, NEW, nodes={"worker-2": kubelet(OLD)})) == []
    finally:
        policy.delete_namespaced_pod_disruption_budget("tight", "default")
        core.delete_namespaced_pod("kept", "default", grace_period_seconds=0)


@pytest.mark.parametrize(
    ("roles", "left"),
    [
        ((), {"worker-1", "worker-3"}),
        (("kubelet",), {"worker-1"}),
        (("containerd", "base"), {"worker-3"}),
        (("neighbours",), set()),
    ],
)
def test_workers_with_another_kubelet_or_containerd_are_found_without_reading_all_of_each_node(
    build: Callable[..., Cluster], newer: Server, roles: tuple[str, ...], left: set[str]
) -> None:
    core = client.CoreV1Api(newer.api())
    names = ("architecture", "kernelVersion", "kubeProxyVersion", "bootID", "machineID", "operatingSystem", "osImage")
    now = f"containerd://{versions.CONTAINERD}"
    nodes = (
        ("worker-1", OLD, now),
        ("worker-2", NEW, now),
        ("worker-3", NEW, "containerd://2.2.9"),
        ("stranger", OLD, "containerd://2.2.9"),
    )
    for name, version, runtime in nodes:
        core.create_node({"metadata": {"name": name}})
        info = {**dict.fromkeys((*names, "systemUUID"), "x"), "kubeletVersion": f"v{version}"}
        core.patch_node_status(name, {"status": {"nodeInfo": {**info, "containerRuntimeVersion": runtime}}})
    try:
        workers = other_workers(build({"kubernetes": {"version": NEW}}), newer, roles)  # type: ignore[arg-type]
    finally:
        core.delete_collection_node()
    assert workers == left


def test_a_worker_that_has_not_reported_yet_is_not_left_out(build: Callable[..., Cluster], newer: Server) -> None:
    core = client.CoreV1Api(newer.api())
    core.create_node({"metadata": {"name": "worker-1"}})
    try:
        assert other_workers(build({"kubernetes": {"version": NEW}}), newer) == frozenset()  # type: ignore[arg-type]
    finally:
        core.delete_collection_node()


def test_versions_and_marks_of_an_earlier_run_are_read_from_nodes(build: Callable[..., Cluster], newer: Server) -> None:
    core = client.CoreV1Api(newer.api())
    names = ("architecture", "kernelVersion", "kubeProxyVersion", "bootID", "machineID", "operatingSystem", "osImage")
    info = {**dict.fromkeys((*names, "systemUUID"), "x"), "kubeletVersion": f"v{NEW}"}
    for name in ("worker-1", "worker-2", "worker-3"):
        core.create_node({"metadata": {"name": name}})
    core.patch_node_status(
        "worker-1", {"status": {"nodeInfo": {**info, "containerRuntimeVersion": "containerd://2.2.9"}}}
    )
    cordon(newer.api(), "worker-2", DrainMark("upgrade", "for a test"))
    cordon(newer.api(), "worker-3", DrainMark("reboot", "for a test"))
    try:
        state = parts.running(build(), newer)  # type: ignore[arg-type]
    finally:
        core.delete_collection_node()
    silent = NodePrograms()
    assert state.nodes == {"worker-1": NodePrograms(NEW, "2.2.9"), "worker-2": silent, "worker-3": silent}
    assert state.begun == {"worker-2"}


@pytest.mark.usefixtures("older")
def test_after_the_start_failures_are_reported_and_do_not_block(
    build: Callable[..., Cluster], newer: Server, well: Callable[[list[StatusItem]], None]
) -> None:
    well([StatusItem("etcds", "etcd-main-2", False, "no answer"), StatusItem("API servers", "api-2", False, "DOWN")])
    cluster = build({"kubernetes": {"version": NEW}})
    running = RunningVersions({"api-1": NEW, "api-2": ""}, frozenset({NEW}), OLD, OLD)
    begun = PreflightInputs(cluster, newer, plan(cluster, running), Rules())  # type: ignore[arg-type]
    assert findings(begun) == []
    assert preflight.unhealthy(begun) == {"etcd-main-2": "no answer"}


def test_the_recorded_version_changes_and_nothing_else_does(older: Server) -> None:
    core = client.CoreV1Api(older.api())
    core.create_namespaced_config_map(
        "kube-system", {"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": SAID}}
    )
    assert parts.recorded_version(older.api()) == OLD
    addons.record_version(older.api(), NEW)
    assert parts.recorded_version(older.api()) == NEW
    data = core.read_namespaced_config_map("kubeadm-config", "kube-system").data
    assert data == {"ClusterConfiguration": SAID.replace(OLD, NEW)}
    core.delete_namespaced_config_map("kubeadm-config", "kube-system")
    assert parts.recorded_version(older.api()) == ""


def test_kubectl_of_either_release_reads_the_objects(older: Server, newer: Server) -> None:
    for version, server in ((OLD, newer), (NEW, older)):
        words = ["--server", server.server, "--insecure-skip-tls-verify", "--token", TOKEN, "version", "-o", "json"]
        process = subprocess.run([of(version)("kubectl"), *words], capture_output=True, check=True, text=True)
        assert json.loads(process.stdout)["clientVersion"]["gitVersion"] == f"v{version}"
