"""What pools with GPUs, and pools that are checked before they take work, are told."""

from __future__ import annotations

import pytest

from cluster import preflight
from cluster.pools import Pool, Taint, TaintEffect
from cluster.spec import Cloud
from components.workers.variables import of_pool

TAINT = {"key": preflight.KEY, "value": "", "effect": "NoSchedule"}
AT_SITE = {"site": "sjc1", "hosts": "hosts.yaml"}
H100 = {"menagerie.dev/gpu-kind": "NVIDIA-H100-80GB-HBM3"}
IMAGE = "projects/p/global/images/family/debian-12-nvidia"


def told(cloud=Cloud.LAB, **fields):
    return of_pool(cloud, "gpu", Pool.model_validate(fields))


def test_hosts_at_sites_join_tainted_beside_the_pool_s_own_taints():
    own = Taint(key="openai.org/team", value="robotics", effect=TaintEffect.NO_SCHEDULE)
    found = told(**AT_SITE, taints=(own,))
    assert found["kubelet_taints"] == [own.model_dump(mode="json"), TAINT]
    # Nothing is known of them, so their clocks are all that is compared, and nothing is done for GPUs.
    assert found["preflight_expected"] == {}
    assert {name for name in found if name.startswith("gpu_")} == set()


def test_a_pool_can_be_left_out_and_keeps_its_gpus():
    found = told(**AT_SITE, hardware="dgx-h100", preflight=False)
    assert (found["kubelet_taints"], "preflight_expected" in found) == ([], False)
    assert (found["gpu_driver_source"], found["kubelet_labels"]) == ("image", {"menagerie.dev/gpu": "true", **H100})


def test_a_kind_of_machine_is_what_hosts_are_compared_with():
    found = told(**AT_SITE, hardware="dgx-h100", driver_branch=580, labels={"a": "b"})
    expected = found["preflight_expected"]
    assert (expected["kind"], expected["cpus"], expected["gpus"]["count"]) == ("dgx-h100", 224, 8)
    assert (expected["gpus"]["driver_branch"], found["gpu_driver_branch"]) == ("580", "580")
    assert found["kubelet_labels"] == {"a": "b", "menagerie.dev/gpu": "true", **H100}


def test_without_a_branch_the_role_has_its_own_and_any_is_right():
    found = told(**AT_SITE, hardware="dgx-h100")
    assert (found["preflight_expected"]["gpus"]["driver_branch"], "gpu_driver_branch" in found) == ("", False)


@pytest.mark.parametrize(
    ("fields", "labelled"),
    [
        ({"machine": "a3-highgpu-8g", "image": IMAGE}, True),
        ({"machine": "a3-highgpu-8g"}, False),
        ({"machine": "a3-highgpu-8g", "image": IMAGE, "allow_no_driver": True}, False),
        ({"machine": "n2-standard-16", "image": IMAGE}, False),
        ({"machine": "z9-huge", "image": IMAGE}, False),
    ],
)
def test_workers_in_the_region_join_free_and_with_gpus_where_their_image_has_the_driver(fields, labelled):
    found = told(Cloud.GCP, **fields, max=4)
    kind = H100 if fields["machine"] == "a3-highgpu-8g" else {}
    gpu = {"menagerie.dev/gpu": "true"} if labelled else {}
    assert found == {"kubelet_labels": {**gpu, **kind, "menagerie/pool": "gpu"}, "kubelet_taints": []}


def test_a_label_of_the_spec_keeps_the_cluster_s_device_plugin_away():
    found = told(**AT_SITE, hardware="dgx-h100", labels={"menagerie.dev/gpu": "false"})
    assert found["kubelet_labels"] == {"menagerie.dev/gpu": "false", **H100}
