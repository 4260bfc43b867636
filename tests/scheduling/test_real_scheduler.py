"""The rendered configuration in the real kube-scheduler: which pods are packed, spread, and give way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from cluster.spec import Cluster
from tests.scheduling.real import Scheduled, scheduled

pytestmark = pytest.mark.xdist_group("scheduling_real")


@pytest.fixture(scope="module")
def whole(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduled]:
    with scheduled(build(), tmp_path_factory.mktemp("scheduled")) as cluster:
        yield cluster


@pytest.fixture
def at(whole: Scheduled) -> Iterator[Scheduled]:
    yield whole
    whole.clear()


def placed(at: Scheduled, count: int) -> Counter[str]:
    """Wait until so many pods are bound; return the pods per node."""
    at.until(lambda: len(at.places()) == count)
    return Counter(at.places().values())


def test_pods_of_the_packing_profile_fill_hosts_one_by_one(at: Scheduled) -> None:
    at.nodes(6)
    for number in range(16):
        at.pod(f"p{number}", 1, schedulerName="pack")
    assert sorted(placed(at, 16).values()) == [8, 8]


def test_pods_without_gpus_are_packed_next_to_pods_with_gpus(at: Scheduled) -> None:
    at.nodes(4)
    at.pod("first", 2, schedulerName="pack")
    at.until(lambda: len(at.places()) == 1)
    for number in range(5):
        at.pod(f"p{number}", 0, schedulerName="pack")
    assert list(placed(at, 6).values()) == [6]


def test_replicas_of_a_service_are_spread(at: Scheduled) -> None:
    at.nodes(6)
    at.world.replicas("served", 12)
    assert sorted(placed(at, 12).values()) == [2] * 6


def test_packed_replicas_may_still_request_separate_hosts(at: Scheduled) -> None:
    at.nodes(3)
    apart = {"labelSelector": {"matchLabels": {"app": "test"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    for number in range(3):
        at.pod(f"p{number}", 1, schedulerName="pack", affinity=rule)
    assert sorted(placed(at, 3).values()) == [1, 1, 1]


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ("balloons", "normal", "then"),
        ("normal", "services", "then"),
        ("low", "normal", "then"),
        ("balloons", "low", "first"),
        ("normal", "normal", "first"),
        ("services", "normal", "first"),
    ],
)
def test_a_pod_gives_way_only_to_higher_classes_that_preempt(at: Scheduled, first: str, then: str, left: str) -> None:
    """One host, and two pods that each need all of it."""
    at.nodes(1)
    at.pod("first", 8, priorityClassName=first)
    at.until(lambda: list(at.places()) == ["first"])
    at.pod("then", 8, priorityClassName=then)
    if left == "then":
        at.until(lambda: list(at.places()) == ["then"])
        return
    # The scheduler has tried and reports it.
    path = "/api/v1/namespaces/default/pods/then"
    at.until(lambda: bool(at.world.call("GET", path)["status"].get("conditions")))
    assert list(at.places()) == ["first"]


def test_pods_without_a_class_are_normal(at: Scheduled) -> None:
    at.nodes(1)
    at.pod("p", 1)
    assert at.world.call("GET", "/api/v1/namespaces/default/pods/p")["spec"]["priority"] == 1000
