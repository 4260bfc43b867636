"""Where CoreDNS runs."""

from __future__ import annotations

from typing import Any

import pytest

from components.control_plane import dns
from network.addresses import plan

TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
SOFT = {"key": "old", "effect": "PreferNoSchedule"}


def rules(cluster: Any) -> set[str]:
    (deployment,) = [each for each in dns.objects(cluster, plan(cluster)) if each["kind"] == "Deployment"]
    spec = deployment["spec"]
    assert spec["replicas"] == 2
    return set(spec["template"]["spec"]["affinity"]["podAntiAffinity"])


@pytest.mark.parametrize(
    ("pool", "hosts", "kept_apart"),
    [
        ({}, 3, True),
        ({}, 1, False),
        ({"taints": [TAINT]}, 3, False),
        ({"taints": [SOFT]}, 2, True),
    ],
    ids=["three hosts", "one host", "hosts of one team alone", "hosts with a soft taint"],
)
def test_two_replicas_never_share_a_host_if_there_are_enough(
    build: Any, lab: Any, pool: dict[str, Any], hosts: int, *, kept_apart: bool
) -> None:
    cluster = build({"pools": {"workers": pool}}, {"workers": lab.hosts["workers"][:hosts]})
    assert rules(cluster) == {f"{'required' if kept_apart else 'preferred'}DuringSchedulingIgnoredDuringExecution"}


def test_workers_in_the_region_count_with_the_minimum_of_their_pool(build: Any, lab: Any) -> None:
    pools = {"region": {"machine": "lab-small", "min": 1, "max": 9}}
    cluster = build({"pools": pools}, {"workers": lab.hosts["workers"][:1]})
    assert rules(cluster) == {"requiredDuringSchedulingIgnoredDuringExecution"}
