"""Variables of pools with GPUs, and of pools that are checked before they take work."""

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


def variables(cloud=Cloud.LAB, **fields):
    return of_pool(cloud, "gpu", Pool.model_validate(fields))


def test_hosts_at_sites_join_with_the_preflight_taint_and_the_pools_own():
    own = Taint(key="openai.org/team", value="robotics", effect=TaintEffect.NO_SCHEDULE)
    rendered = variables(**AT_SITE, taints=(own,))
    assert rendered["kubelet_taints"] == [own.model_dump(mode="json"), TAINT]
    # Their hardware is unknown, so only their clocks are compared, and nothing is done for GPUs.
    assert rendered["preflight_expected"] == {}
    assert {name for name in rendered if name.startswith("gpu_")} == set()


def test_a_pool_without_preflight_keeps_its_gpus():
    rendered = variables(**AT_SITE, hardware="dgx-h100", preflight=False)
    assert (rendered["kubelet_taints"], "preflight_expected" in rendered) == ([], False)
    assert (rendered["gpu_driver_source"], rendered["kubelet_labels"]) == (
        "image",
        {"menagerie.dev/gpu": "true", **H100},
    )


def test_hosts_are_compared_with_their_kind_of_machine():
    rendered = variables(**AT_SITE, hardware="dgx-h100", driver_branch=580, labels={"a": "b"})
    expected = rendered["preflight_expected"]
    assert (expected["kind"], expected["cpus"], expected["gpus"]["count"]) == ("dgx-h100", 224, 8)
    assert (expected["gpus"]["driver_branch"], rendered["gpu_driver_branch"]) == ("580", "580")
    assert rendered["kubelet_labels"] == {"a": "b", "menagerie.dev/gpu": "true", **H100}


def test_without_a_branch_the_role_uses_its_own_and_any_is_accepted():
    rendered = variables(**AT_SITE, hardware="dgx-h100")
    assert (rendered["preflight_expected"]["gpus"]["driver_branch"], "gpu_driver_branch" in rendered) == ("", False)


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
def test_workers_in_the_region_join_untainted_and_with_gpus_if_their_image_has_the_driver(fields, labelled):
    rendered = variables(Cloud.GCP, **fields, max=4)
    kind = H100 if fields["machine"] == "a3-highgpu-8g" else {}
    gpu = {"menagerie.dev/gpu": "true"} if labelled else {}
    assert rendered == {"kubelet_labels": {**gpu, **kind, "menagerie/pool": "gpu"}, "kubelet_taints": []}


def test_a_label_in_the_spec_keeps_the_device_plugin_away():
    rendered = variables(**AT_SITE, hardware="dgx-h100", labels={"menagerie.dev/gpu": "false"})
    assert rendered["kubelet_labels"] == {"menagerie.dev/gpu": "false", **H100}
