"""kube-scheduler's configuration, and what an operator may choose in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from cluster.scheduling import Pack
from cluster.spec import Cluster
from components.control_plane import scheduler


def profiles(cluster: Cluster) -> dict[str, Any]:
    configuration = yaml.safe_load(scheduler.render(cluster))
    return {profile["schedulerName"]: profile for profile in configuration["profiles"]}


def strategy(profile: dict[str, Any]) -> dict[str, Any]:
    (fit,) = (each["args"] for each in profile["pluginConfig"] if each["name"] == "NodeResourcesFit")
    return dict(fit["scoringStrategy"])


def test_the_packing_profile_gives_gpus_the_largest_weight(lab: Cluster) -> None:
    chosen = strategy(profiles(lab)["pack"])
    weights = {each["name"]: each["weight"] for each in chosen["resources"]}
    assert chosen["type"] == "MostAllocated"
    assert max(weights, key=lambda name: weights[name]) == "nvidia.com/gpu"


def test_pods_without_a_profile_get_the_default_scheduler(lab: Cluster) -> None:
    assert list(profiles(lab)) == ["default-scheduler", "pack"]
    assert profiles(lab)["default-scheduler"] == {"schedulerName": "default-scheduler"}


def test_an_operator_chooses_the_weights_and_the_share_of_scored_nodes(build: Callable[..., Cluster]) -> None:
    cluster = build({"scheduling": {"pack": {"gpu": 9, "memory": 3, "nodes_scored": 40}}})
    profile = profiles(cluster)["pack"]
    assert profile["percentageOfNodesToScore"] == 40
    assert [each["weight"] for each in strategy(profile)["resources"]] == [9, 1, 3]


@pytest.mark.parametrize("wrong", [{"gpu": 0}, {"cpu": 101}, {"nodes_scored": 0}, {"disk": 1}])
def test_values_that_kube_scheduler_rejects_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Pack.model_validate(wrong)


def test_the_scheduler_reads_its_configuration_and_its_own_kubeconfig(lab: Cluster) -> None:
    configuration = yaml.safe_load(scheduler.render(lab))
    words = scheduler.flags(lab, scheduler.CONFIG, scheduler.KUBECONFIG)
    assert configuration["clientConnection"]["kubeconfig"] == words["kubeconfig"] == scheduler.KUBECONFIG
    assert words["config"] == "/etc/kubernetes/menagerie/scheduler.yaml"
    assert (configuration["enableProfiling"], words["profiling"]) == (False, "false")
