"""The proof that machines are added and removed: when it is skipped, and that the planner understands its job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clients.lease import Lease
from cluster.pools import Taint, TaintEffect
from cluster.spec import Cluster
from controllers.autoscaler.pods import waiting
from operations.growth import Probe, job
from operations.verify import growth
from operations.verify.proof import Context
from tests.operations.conftest import FakeAccess, outputs
from tests.scheduling.autoscaler.support import CHOICES, pod_document

GROWS = {"autoscaler": {}, "pools": {"region": {"machine": "lab-small", "min": 1, "max": 2}}}


@pytest.fixture
def context(lab: Cluster) -> Context:
    def never() -> Any:
        raise AssertionError("pods were started")

    access: Any = FakeAccess(outputs())
    return Context(lab, access, None, never, None, lambda _: None)


def with_nodes(monkeypatch: pytest.MonkeyPatch, count: int, holder: str) -> None:
    monkeypatch.setattr(Probe, "nodes", lambda probe: [object()] * count)
    monkeypatch.setattr(Lease, "__init__", lambda *_: None)
    monkeypatch.setattr(Lease, "other", lambda _: holder)


def test_it_is_skipped_where_the_spec_has_no_autoscaler(context: Context) -> None:
    assert growth.lacks_an_autoscaler(context) == "needs an autoscaler, which the spec does not have"


def test_it_is_skipped_where_no_pool_has_room(
    context: Context, build: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nodes(monkeypatch, 2, "somebody")
    full = replace(context, cluster=build(GROWS))
    assert "fewer nodes than its max" in growth.lacks_an_autoscaler(full)


def test_it_is_skipped_with_the_command_if_no_autoscaler_runs(
    context: Context, build: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nodes(monkeypatch, 1, "")
    alone = replace(context, cluster=build(GROWS))
    assert "run ./menagerie autoscaler run lab --yes" in growth.lacks_an_autoscaler(alone)


def test_it_is_tried_if_a_pool_has_room_and_an_autoscaler_runs(
    context: Context, build: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nodes(monkeypatch, 1, "somebody")
    assert growth.lacks_an_autoscaler(replace(context, cluster=build(GROWS))) == ""


def test_the_planner_sees_that_its_job_can_run_on_no_existing_host_and_on_any_new_one_of_the_pool() -> None:
    there = frozenset({"lab-region-1", "worker-1"})
    spec = job("region", (), there, {"image": "busybox"})["spec"]["template"]["spec"]
    made = waiting(pod_document("growth", nodeSelector=spec["nodeSelector"], affinity=spec["affinity"]), CHOICES)

    def takes(labels: dict[str, str]) -> bool:
        return any(all(need.met(labels) for need in term) for term in made.shape.needs)

    pool = {"menagerie/pool": "region"}
    assert takes(pool)
    assert takes({**pool, "kubernetes.io/hostname": "lab-region-2"})
    assert not takes({**pool, "kubernetes.io/hostname": "lab-region-1"})
    assert not takes({"menagerie/pool": "other"})


def test_its_pod_tolerates_only_the_pool_s_taints() -> None:
    taint = Taint(key="nvidia.com/gpu", value="present", effect=TaintEffect.NO_SCHEDULE)
    spec = job("region", (taint,), frozenset(), {"image": "busybox"})["spec"]["template"]["spec"]
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]
