"""The fixed set of priorities, and which gives way to which."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from cluster.allocations import BORROWED_PRIORITY
from cluster.spec import Cluster
from components.control_plane import manifests
from components.scheduling import balloons, priorities
from components.scheduling.priorities import BALLOONS, LOW, NORMAL, PRIORITIES, SERVICES
from network.addresses import plan

DOCS = (Path(__file__).parents[2] / "docs" / "explanation" / "scheduling.md").read_text()
SYSTEM = 2_000_000_000
"""Priority of Kubernetes' own classes. User-defined ones must be at most half of it (pkg/apis/scheduling, HighestUserDefinablePriority)."""
EXPENDABLE = -10
"""cluster-autoscaler adds no hosts for pods below this priority."""


def test_the_order_is_services_normal_low_balloons_and_borrowed_work() -> None:
    assert [each.name for each in PRIORITIES] == [SERVICES, NORMAL, LOW, BALLOONS]
    assert all(one.value > other.value for one, other in pairwise(PRIORITIES))
    assert max(each.value for each in PRIORITIES) <= SYSTEM / 2


def test_one_class_is_the_default() -> None:
    assert [each.name for each in PRIORITIES if each.default] == [NORMAL]


def test_low_classes_do_not_preempt() -> None:
    assert [each.name for each in PRIORITIES if each.preempts] == [SERVICES, NORMAL]


def test_an_autoscaler_adds_hosts_for_balloons_but_not_for_borrowed_work() -> None:
    values = {each.name: each.value for each in PRIORITIES}
    assert values[BALLOONS] >= EXPENDABLE > BORROWED_PRIORITY


def test_the_documentation_lists_each_class_with_its_value() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| ([-0-9,]+) \|", DOCS, re.MULTILINE)
    assert rows == [(each.name, f"{each.value:,}") for each in PRIORITIES]


def test_classes_are_applied_before_objects_that_use_them(lab: Cluster) -> None:
    paths = [item["path"] for item in json.loads(manifests.render(lab, plan(lab)))]
    assert [path for path in paths if "priorityclasses" in path] == [
        f"/apis/scheduling.k8s.io/v1/priorityclasses/{each.name}" for each in PRIORITIES
    ]
    assert paths.index("/apis/scheduling.k8s.io/v1/priorityclasses/balloons") < paths.index(
        "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
    )
    assert len(priorities.objects()) == len(PRIORITIES)


@pytest.fixture
def gpu_pool(build: Callable[..., Cluster]) -> Callable[..., Cluster]:
    """Workers of AWS with eight GPUs each."""

    def make(**changes: object) -> Cluster:
        taint = {"key": "openai.org/gpu", "value": "h100", "effect": "NoSchedule"}
        pool = {"machine": "p5.48xlarge", "max": 8, "taints": [taint], **changes}
        return build({"control_plane": {"cloud": "aws"}, "pools": {"gpu": pool}})

    return make


def test_a_balloon_requests_all_gpus_and_most_cpus_of_a_host_and_shares_no_host(
    gpu_pool: Callable[..., Cluster],
) -> None:
    (deployment,) = balloons.objects(gpu_pool(balloons=3), "pause")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (deployment["metadata"]["name"], deployment["spec"]["replicas"]) == ("balloons-gpu", 3)
    assert container["resources"] == {
        "requests": {"cpu": "144000m", "nvidia.com/gpu": "8"},
        "limits": {"nvidia.com/gpu": "8"},
    }
    assert pod["priorityClassName"] == BALLOONS
    assert [each["key"] for each in pod["tolerations"]] == ["openai.org/gpu"]
    assert list(pod["affinity"]["podAntiAffinity"]) == ["requiredDuringSchedulingIgnoredDuringExecution"]


def test_zero_balloons_scale_the_deployment_to_zero(gpu_pool: Callable[..., Cluster]) -> None:
    (deployment,) = balloons.objects(gpu_pool(balloons=0), "pause")
    assert deployment["spec"]["replicas"] == 0
    assert balloons.objects(gpu_pool(), "pause") == ()


def test_balloons_on_machines_outside_the_catalogue_request_nothing(
    build: Callable[..., Cluster],
) -> None:
    (deployment,) = balloons.objects(
        build({"pools": {"r": {"machine": "lab-small", "max": 2, "balloons": 1}}}), "pause"
    )
    assert deployment["spec"]["template"]["spec"]["containers"][0]["resources"] == {}
