"""CSI drivers: which ones a cluster has, their rights, and where they run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster import versions
from cluster.files import STORAGE_CLASSES
from cluster.pools import POOL_LABEL, TRUSTED_POOL
from cluster.spec import Cloud, Cluster
from components.control_plane import csi, manifests, render
from components.control_plane.csi.drivers import BLOCK, FILE
from components.control_plane.csi.rights import NAMESPACE
from network.addresses import plan
from tests.control_plane.csi_support import CLOUDS, cluster

Object = dict[str, Any]
CPU = {"machine": "m7i.2xlarge", "min": 1, "max": 5}
GPU = {"machine": "p5.48xlarge", "min": 1, "max": 5, "image": "ami-0123456789abcdef0"}


@pytest.fixture(params=CLOUDS)
def of_cloud(request: pytest.FixtureRequest) -> Cluster:
    return cluster(request.param)


def of_kind(small: Cluster, kind: str) -> list[Object]:
    return [thing for thing in csi.objects(small) if thing["kind"] == kind]


def pods(small: Cluster) -> dict[str, Object]:
    return {
        thing["metadata"]["name"]: thing["spec"]["template"]["spec"]
        for kind in ("Deployment", "DaemonSet")
        for thing in of_kind(small, kind)
    }


def containers(small: Cluster) -> Iterator[tuple[str, Object]]:
    for name, pod in pods(small).items():
        for container in pod["containers"]:
            yield name, container


def drivers(small: Cluster) -> list[str]:
    return [thing["metadata"]["name"] for thing in of_kind(small, "CSIDriver")]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_cluster_has_the_drivers_that_its_spec_needs(cloud: Cloud) -> None:
    block, file = BLOCK[cloud].name, FILE[cloud].name
    assert drivers(cluster(cloud, {})) == [block]
    assert drivers(cluster(cloud, {"block": False, "file": True})) == [file]
    assert drivers(cluster(cloud)) == [block, file]
    assert csi.objects(cluster(cloud, {"block": False})) == ()


def test_without_workers_in_the_region_there_are_no_drivers(lab: Cluster, build: Callable[..., Cluster]) -> None:
    in_region = {"cpu": {"machine": "large", "max": 5}}
    nobody = cluster(Cloud.AWS, pools={"cpu": {**CPU, "min": 0, "max": 0}})
    for each in (lab, build({"pools": in_region, "storage": {"file": True}}), nobody):
        assert csi.objects(each) == ()
        assert STORAGE_CLASSES not in {secret.name for secret in render.secrets(each)}


def test_drivers_are_in_the_payload_and_their_classes_in_the_bundle(of_cloud: Cluster) -> None:
    listed = [item["object"] for item in json.loads(manifests.render(of_cloud, plan(of_cloud)))]
    assert all(thing in listed for thing in csi.objects(of_cloud))
    assert not any(thing["kind"] == "StorageClass" for thing in listed)
    (secret,) = (secret for secret in render.secrets(of_cloud) if secret.name == STORAGE_CLASSES)
    assert (secret.path, secret.mode) == ("/etc/kubernetes/menagerie/storage-classes.json", 0o600)


def test_every_account_is_created_and_bound_and_every_role_exists(of_cloud: Cluster) -> None:
    accounts = {thing["metadata"]["name"] for thing in of_kind(of_cloud, "ServiceAccount")}
    assert accounts == {pod["serviceAccountName"] for pod in pods(of_cloud).values()}
    bound = set()
    for kind in ("ClusterRole", "Role"):
        roles = {thing["metadata"]["name"] for thing in of_kind(of_cloud, kind)}
        bindings = of_kind(of_cloud, f"{kind}Binding")
        assert {thing["roleRef"]["name"] for thing in bindings} == roles
        bound |= {subject["name"] for thing in bindings for subject in thing["subjects"]}
    assert bound == accounts


def test_no_driver_reads_secrets_or_pods_or_changes_a_node(of_cloud: Cluster) -> None:
    rules = [rule for thing in of_kind(of_cloud, "ClusterRole") for rule in thing["rules"]]
    granted = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert not {resource for resource, _ in granted} & {"secrets", "pods", "configmaps", "leases", "*"}
    assert {verb for resource, verb in granted if resource == "nodes"} == {"get", "list", "watch"}
    assert "*" not in {verb for _, verb in granted}


def test_leases_are_not_in_the_namespace_of_the_control_planes_leases(of_cloud: Cluster) -> None:
    namespaced = [*of_kind(of_cloud, "Role"), *of_kind(of_cloud, "RoleBinding"), *of_kind(of_cloud, "Deployment")]
    assert {thing["metadata"]["namespace"] for thing in namespaced} == {NAMESPACE} != {"kube-system"}


def test_a_sidecar_runs_where_its_rights_are_bound(of_cloud: Cluster) -> None:
    bound = {
        (b["subjects"][0]["name"], b["roleRef"]["name"].removeprefix("menagerie:csi-"))
        for b in of_kind(of_cloud, "ClusterRoleBinding")
    }
    stand = {
        (pod, container["name"].removeprefix("csi-"))
        for pod, container in containers(of_cloud)
        if "--leader-election" in container["args" if "args" in container else "command"]
    }
    assert {(who, what) for who, what in bound if what != "node"} == stand


def test_images_have_the_pinned_versions(of_cloud: Cluster) -> None:
    pinned = {f"v{value}" for name, value in vars(versions).items() if "CSI" in name}
    images = {container["image"] for _, container in containers(of_cloud)}
    assert {image.partition("@")[0].rpartition(":")[2] for image in images} <= pinned
    assert all(
        re.fullmatch(
            r"(registry\.k8s\.io|public\.ecr\.aws|mcr\.microsoft\.com)/[a-z0-9/-]+:v[0-9.]+@sha256:[0-9a-f]{64}", i
        )
        for i in images
    )


def test_a_mirror_serves_every_image(of_cloud: Cluster) -> None:
    """containerd redirects images of registry.k8s.io to the mirror; other images name the mirror."""
    artefacts = {"registry": "registry.example.org:5000"}
    mirrored = cluster(of_cloud.spec.control_plane.cloud, artefacts=artefacts)
    for (_, before), (_, after) in zip(containers(of_cloud), containers(mirrored), strict=True):
        host, _, path = before["image"].partition("/")
        assert after["image"] == (before["image"] if host == "registry.k8s.io" else f"registry.example.org:5000/{path}")


def test_controllers_run_on_their_pool_and_tolerate_its_taints() -> None:
    taints = [{"key": "research/storage", "value": "", "effect": "NoSchedule"}]
    pools = {"gpu": GPU, "cpu": CPU, "spare": {**CPU, "taints": taints}}
    by_default = cluster(Cloud.AWS, pools=pools)
    assert pods(by_default)["ebs-controller"]["nodeSelector"][TRUSTED_POOL] == "cpu"
    chosen = pods(cluster(Cloud.AWS, {"controllers": "spare"}, pools=pools))["ebs-controller"]
    assert chosen["nodeSelector"][TRUSTED_POOL] == "spare"
    assert chosen["tolerations"][0] == {
        "key": "research/storage",
        "operator": "Equal",
        "value": "",
        "effect": "NoSchedule",
    }
    assert {"operator": "Exists"} not in chosen["tolerations"]


def test_plugins_run_on_every_node_of_the_region_and_no_other(of_cloud: Cluster) -> None:
    for thing in of_kind(of_cloud, "DaemonSet"):
        pod = thing["spec"]["template"]["spec"]
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term == {"matchExpressions": [{"key": POOL_LABEL, "operator": "Exists"}]}
        assert (pod["tolerations"], pod["priorityClassName"]) == ([{"operator": "Exists"}], "system-node-critical")


@pytest.mark.parametrize(("most", "replicas"), [(1, 1), (2, 2), (9, 2)])
def test_there_is_a_second_controller_and_a_budget_if_there_is_a_second_machine(most: int, replicas: int) -> None:
    small = cluster(Cloud.AWS, pools={"cpu": {**CPU, "max": most}})
    assert [thing["spec"]["replicas"] for thing in of_kind(small, "Deployment")] == [replicas, replicas]
    budgets = {thing["metadata"]["name"]: thing["spec"]["selector"] for thing in of_kind(small, "PodDisruptionBudget")}
    selectors = {thing["metadata"]["name"]: thing["spec"]["selector"] for thing in of_kind(small, "Deployment")}
    assert budgets == (selectors if replicas > 1 else {})


def test_probes_have_their_own_ports_and_listen_on_the_loopback(of_cloud: Cluster) -> None:
    """They may all run on one host's network."""
    listened = [
        arg.partition("=")[2] for _, c in containers(of_cloud) for arg in c.get("args", ()) if "http-endpoint" in arg
    ]
    assert len(listened) == len(set(listened)) == len(pods(of_cloud))
    assert all(place.startswith("127.0.0.1:") for place in listened)
    probes = [
        container["livenessProbe"]["httpGet"] for _, container in containers(of_cloud) if "livenessProbe" in container
    ]
    assert {f"{probe['host']}:{probe['port']}" for probe in probes} == set(listened)


def test_only_plugins_are_privileged(of_cloud: Cluster) -> None:
    for name, container in containers(of_cloud):
        context = container.get("securityContext", {})
        if context.get("privileged"):
            assert (name.rpartition("-")[2], container["name"]) == ("node", name.rpartition("-")[0])
        elif container["name"] != "helper":
            assert (context["allowPrivilegeEscalation"], context["capabilities"]) == (False, {"drop": ["ALL"]})
    assert all(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault" for pod in pods(of_cloud).values())


def test_containers_mount_what_their_pods_have(of_cloud: Cluster) -> None:
    for name, pod in pods(of_cloud).items():
        volumes = [volume["name"] for volume in pod["volumes"]]
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", ())}
        assert sorted(volumes) == sorted(mounted), name
        assert all(container["resources"]["requests"] for container in pod["containers"])


def test_volumes_that_are_attached_need_an_attacher(of_cloud: Cluster) -> None:
    for thing in of_kind(of_cloud, "CSIDriver"):
        short = next(d.short for d in (*BLOCK.values(), *FILE.values()) if d.name == thing["metadata"]["name"])
        names = [container["name"] for container in pods(of_cloud)[f"{short}-controller"]["containers"]]
        assert thing["spec"]["attachRequired"] is ("csi-attacher" in names)


def test_volumes_are_tagged_with_the_clusters_name(of_cloud: Cluster) -> None:
    """It limits rights in the cloud; for Azure's drivers it is in the class."""
    arguments = " ".join(arg for name, c in containers(of_cloud) if name.endswith("controller") for arg in c["args"])
    expected = {
        Cloud.AWS: [f"cluster={of_cloud.name}", f"cluster:{of_cloud.name}"],
        Cloud.GCP: [f"cluster={of_cloud.name}"] * 2,
    }
    for tag in expected.get(of_cloud.spec.control_plane.cloud, []):
        assert tag in arguments
