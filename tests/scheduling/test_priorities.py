"""The fixed set of priorities, and what gives way to what."""

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
"""Kubernetes' own classes; what people make must be below half of it (pkg/apis/scheduling, HighestUserDefinablePriority)."""
EXPENDABLE = -10
"""Below it cluster-autoscaler adds no hosts."""


def test_the_order_is_services_normal_low_balloons_and_what_is_borrowed() -> None:
    assert [each.name for each in PRIORITIES] == [SERVICES, NORMAL, LOW, BALLOONS]
    assert all(one.value > other.value for one, other in pairwise(PRIORITIES))
    assert max(each.value for each in PRIORITIES) <= SYSTEM / 2


def test_one_class_is_that_of_pods_that_name_none() -> None:
    assert [each.name for each in PRIORITIES if each.default] == [NORMAL]


def test_what_gives_way_puts_nobody_out() -> None:
    assert [each.name for each in PRIORITIES if each.preempts] == [SERVICES, NORMAL]


def test_balloons_are_worth_a_host_to_an_autoscaler_and_borrowed_work_is_not() -> None:
    values = {each.name: each.value for each in PRIORITIES}
    assert values[BALLOONS] >= EXPENDABLE > BORROWED_PRIORITY


def test_the_documentation_has_each_with_its_value() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| ([-0-9,]+) \|", DOCS, re.MULTILINE)
    assert rows == [(each.name, f"{each.value:,}") for each in PRIORITIES]


def test_they_are_applied_before_what_names_them(lab: Cluster) -> None:
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

    def made(**changes: object) -> Cluster:
        taint = {"key": "openai.org/gpu", "value": "h100", "effect": "NoSchedule"}
        pool = {"machine": "p5.48xlarge", "max": 8, "taints": [taint], **changes}
        return build({"control_plane": {"cloud": "aws"}, "pools": {"gpu": pool}})

    return made


def test_a_balloon_asks_for_all_gpus_and_most_processors_of_a_host_and_shares_none(
    gpu_pool: Callable[..., Cluster],
) -> None:
    (made,) = balloons.objects(gpu_pool(balloons=3), "pause")
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (made["metadata"]["name"], made["spec"]["replicas"]) == ("balloons-gpu", 3)
    assert container["resources"] == {
        "requests": {"cpu": "144000m", "nvidia.com/gpu": "8"},
        "limits": {"nvidia.com/gpu": "8"},
    }
    assert pod["priorityClassName"] == BALLOONS
    assert [each["key"] for each in pod["tolerations"]] == ["openai.org/gpu"]
    assert list(pod["affinity"]["podAntiAffinity"]) == ["requiredDuringSchedulingIgnoredDuringExecution"]


def test_no_balloons_are_taken_away_by_saying_so(gpu_pool: Callable[..., Cluster]) -> None:
    (made,) = balloons.objects(gpu_pool(balloons=0), "pause")
    assert made["spec"]["replicas"] == 0
    assert balloons.objects(gpu_pool(), "pause") == ()


def test_balloons_on_machines_that_the_catalogue_does_not_know_keep_apart_and_ask_for_nothing(
    build: Callable[..., Cluster],
) -> None:
    (made,) = balloons.objects(build({"pools": {"r": {"machine": "lab-small", "max": 2, "balloons": 1}}}), "pause")
    assert made["spec"]["template"]["spec"]["containers"][0]["resources"] == {}
