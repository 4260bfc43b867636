"""The objects of metrics-server: whom it verifies, who verifies it, where it runs, and what it requests."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.images import METRICS_SERVER
from cluster.spec import Cluster
from components.control_plane import metrics, metrics_keys, sizing
from components.control_plane.host import metrics_keys as keys
from components.control_plane.objects import Object
from components.control_plane.ports import METRICS_SERVER_PORT

TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def only(cluster: Cluster, kind: str) -> Object:
    (thing,) = [each for each in metrics.objects(cluster) if each["kind"] == kind]
    return thing


def pod(cluster: Cluster) -> Object:
    spec: Object = only(cluster, "Deployment")["spec"]["template"]["spec"]
    return spec


def container(cluster: Cluster) -> Object:
    (one,) = pod(cluster)["containers"]
    return dict(one)


def test_it_verifies_kubelets_and_api_servers_verify_it(lab: Cluster) -> None:
    arguments = container(lab)["args"]
    assert not [each for each in arguments if "insecure" in each]
    folders = {each["name"]: each["mountPath"] for each in container(lab)["volumeMounts"]}
    assert f"--kubelet-certificate-authority={folders['kubelets']}/ca.crt" in arguments
    assert f"--tls-cert-file={folders['serving']}/tls.crt" in arguments
    assert f"--tls-private-key-file={folders['serving']}/tls.key" in arguments
    service = only(lab, "APIService")
    assert service["spec"]["insecureSkipTLSVerify"] is False
    assert "caBundle" not in service["spec"], "metrics-keys owns this field"
    named = service["spec"]["service"]
    assert metrics.HOST == f"{named['name']}.{named['namespace']}.svc"


def test_its_keys_are_those_that_metrics_keys_writes(lab: Cluster) -> None:
    volumes = {each["name"]: each for each in pod(lab)["volumes"]}
    things = keys.desired(dict.fromkeys((name for name, _ in metrics_keys.unit().credentials), "x")).values()
    written = {
        thing["kind"]: thing
        for thing in things
        if thing["metadata"].get("namespace", metrics.NAMESPACE) == metrics.NAMESPACE
    }
    assert volumes["serving"]["secret"]["secretName"] == written["Secret"]["metadata"]["name"]
    assert [each["key"] for each in volumes["serving"]["secret"]["items"]] == list(written["Secret"]["data"])
    assert volumes["kubelets"]["configMap"]["name"] == written["ConfigMap"]["metadata"]["name"]
    assert [each["key"] for each in volumes["kubelets"]["configMap"]["items"]] == list(written["ConfigMap"]["data"])
    assert written["APIService"]["metadata"]["name"] == only(lab, "APIService")["metadata"]["name"]
    assert {written[kind]["metadata"]["namespace"] for kind in ("Secret", "ConfigMap")} == {metrics.NAMESPACE}


def test_the_service_leads_to_the_port_on_which_it_serves(lab: Cluster) -> None:
    (port,) = only(lab, "Service")["spec"]["ports"]
    assert f"--secure-port={port['targetPort']}" in container(lab)["args"]
    assert port["targetPort"] == container(lab)["ports"][0]["containerPort"] == METRICS_SERVER_PORT
    assert port["port"] == only(lab, "APIService")["spec"]["service"]["port"]
    assert container(lab)["image"] == METRICS_SERVER


def test_it_runs_without_privileges_on_a_root_that_it_cannot_write(lab: Cluster) -> None:
    assert pod(lab)["securityContext"]["runAsNonRoot"] is True
    assert pod(lab)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod(lab)["priorityClassName"] == "system-cluster-critical"
    context = container(lab)["securityContext"]
    assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID"} & set(pod(lab))


def test_its_rights_are_to_read_nodes_pods_and_metrics_of_nodes_alone(lab: Cluster) -> None:
    roles = {each["metadata"]["name"]: each["rules"] for each in metrics.objects(lab) if each["kind"] == "ClusterRole"}
    granted = {
        (resource, verb)
        for rule in roles["system:metrics-server"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    lists = {(kind, verb) for kind in ("nodes", "pods") for verb in ("get", "list", "watch")}
    assert granted == {("nodes/metrics", "get"), *lists}


@pytest.mark.parametrize(
    ("pool", "hosts", "replicas"),
    [({}, 3, 2), ({}, 2, 2), ({}, 1, 1), ({"taints": [TAINT]}, 3, 1)],
    ids=["three hosts", "two hosts", "one host", "hosts of one team alone"],
)
def test_there_are_two_pods_on_different_hosts_if_two_hosts_take_them(
    build: Any, lab: Cluster, pool: dict[str, Any], hosts: int, replicas: int
) -> None:
    cluster = build({"pools": {"workers": pool}}, {"workers": lab.hosts["workers"][:hosts]})
    assert only(cluster, "Deployment")["spec"]["replicas"] == replicas
    rules = pod(cluster)["affinity"]["podAntiAffinity"]
    assert ("requiredDuringSchedulingIgnoredDuringExecution" in rules) is (replicas == 2)


def test_requests_grow_with_the_most_nodes_that_the_cluster_can_have(build: Any, lab: Cluster) -> None:
    assert container(lab)["resources"] == {
        "requests": {"cpu": "100m", "memory": "200Mi"},
        "limits": {"memory": "400Mi"},
    }
    large = build({"pools": {"region": {"machine": "lab-small", "min": 1, "max": 2000}}})
    assert container(large)["resources"]["requests"] == {"cpu": "3000m", "memory": "6000Mi"}


def test_no_size_gets_less_than_upstream_says_for_each_node() -> None:
    for nodes in (0, 1, 99, 100, 101, 300, 301, 1000, 1001, 3000, 3001, 7500, 7501):
        room = sizing.metrics_room(nodes)
        assert room.cpu_m >= max(100, nodes)
        assert room.memory_mib >= max(200, 2 * nodes)


def test_the_program_that_writes_keys_follows_each_of_its_files() -> None:
    unit, consumer = metrics_keys.unit(), metrics_keys.consumer()
    assert {path for _, path in unit.credentials} == set(consumer.paths)
    assert {ref.path for ref in metrics_keys.secrets()} < set(consumer.paths)
    assert consumer.unit == unit.name
    assert {ref.mode for ref in metrics_keys.secrets() if ref.name.endswith(".key")} == {0o600}
