"""The DaemonSets of nodes with GPUs."""

from __future__ import annotations

import re

import pytest

from cluster.spec import Cloud
from components.control_plane import gpu, manifests
from network.addresses import plan
from tests.control_plane.csi_support import cluster

OWN = {"workers": {"hardware": "dgx-h100"}}


@pytest.fixture(scope="module")
def plugin(build):
    return gpu.objects(build({"pools": OWN}))[0]


@pytest.fixture(scope="module")
def exporter(build):
    return gpu.objects(build({"pools": OWN}))[1]


def pod(daemon_set):
    return daemon_set["spec"]["template"]["spec"]


def container(daemon_set):
    (only,) = pod(daemon_set)["containers"]
    return only


def environment(daemon_set):
    return {each["name"]: each["value"] for each in container(daemon_set)["env"]}


def in_cloud(**pool):
    return cluster(Cloud.AWS, pools={"gpu": {"machine": "p5.48xlarge", "max": 4, **pool}})


def test_a_cluster_has_them_if_its_spec_has_gpus_that_it_manages(lab, build):
    assert gpu.objects(lab) == ()
    assert len(gpu.objects(build({"pools": OWN}))) == 2
    assert len(gpu.objects(in_cloud(image="ami-0123456789abcdef0"))) == 2
    # The image has no driver, or the operator runs another device plugin.
    assert gpu.objects(in_cloud()) == ()
    assert gpu.objects(in_cloud(image="ami-0123456789abcdef0", allow_no_driver=True)) == ()


def test_the_api_servers_apply_them(lab, build):
    own = build({"pools": OWN})
    names = [thing["metadata"]["name"] for thing in manifests.objects(own, plan(own))]
    assert names[-2:] == ["nvidia-device-plugin", "dcgm-exporter"]


def test_images_come_from_your_registry_under_the_same_paths(build):
    daemon_sets = gpu.objects(build({"pools": OWN, "artefacts": {"registry": "registry.example.org:5000"}}))
    assert [container(each)["image"].rpartition(":")[0] for each in daemon_sets] == [
        "registry.example.org:5000/nvidia/k8s-device-plugin",
        "registry.example.org:5000/nvidia/k8s/dcgm-exporter",
    ]


def test_they_run_only_on_nodes_with_gpus_and_tolerate_all_taints(plugin, exporter):
    for each in (plugin, exporter):
        assert pod(each)["nodeSelector"] == {"menagerie.dev/gpu": "true"}
        assert pod(each)["tolerations"] == [{"operator": "Exists"}]
        assert pod(each)["automountServiceAccountToken"] is False


def test_gpus_are_assigned_with_cdi(plugin):
    assert environment(plugin)["DEVICE_LIST_STRATEGY"] == "cdi-cri"
    assert environment(plugin)["NVIDIA_DRIVER_ROOT"] == "/"
    assert "runtimeClassName" not in pod(plugin)


def test_the_plugin_writes_only_its_socket_and_its_cdi_specification_on_the_host(plugin):
    writable = [each["mountPath"] for each in container(plugin)["volumeMounts"] if not each["readOnly"]]
    assert writable == ["/var/lib/kubelet/device-plugins", "/var/run/cdi"]


def test_the_exporter_has_no_devices_and_no_privileges(exporter):
    context = container(exporter)["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["allowPrivilegeEscalation"] is False
    assert "privileged" not in context
    assert all(each["readOnly"] for each in container(exporter)["volumeMounts"])
    assert environment(exporter)["DCGM_REMOTE_HOSTENGINE_INFO"] == "localhost:5555"
    assert pod(exporter)["hostNetwork"] is True


def test_every_mount_has_its_volume_and_every_image_its_version(plugin, exporter):
    for each in (plugin, exporter):
        volumes = {volume["name"] for volume in pod(each)["volumes"]}
        assert {mount["name"] for mount in container(each)["volumeMounts"]} == volumes
        assert re.search(r":v?\d+\.\d+\.\d+", container(each)["image"])
