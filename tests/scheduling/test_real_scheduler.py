"""The rendered configuration in the real kube-scheduler: who is packed, who is spread, who gives way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from cluster.spec import Cluster
from tests.scheduling.real import Scheduled, scheduled

pytestmark = pytest.mark.xdist_group("scheduling_real")


@pytest.fixture(scope="module")
def whole(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduled]:
    with scheduled(build(), tmp_path_factory.mktemp("scheduled")) as made:
        yield made


@pytest.fixture
def at(whole: Scheduled) -> Iterator[Scheduled]:
    yield whole
    whole.clear()


def placed(at: Scheduled, count: int) -> Counter[str]:
    """Pods a node, once so many are bound."""
    at.until(lambda: len(at.places()) == count)
    return Counter(at.places().values())


def test_pods_of_the_profile_that_packs_fill_hosts_one_after_the_other(at: Scheduled) -> None:
    at.nodes(6)
    for number in range(16):
        at.pod(f"p{number}", 1, schedulerName="pack")
    assert sorted(placed(at, 16).values()) == [8, 8]


def test_pods_without_gpus_are_packed_beside_those_with_some(at: Scheduled) -> None:
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


def test_replicas_that_are_packed_may_still_ask_to_be_apart(at: Scheduled) -> None:
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
def test_who_gives_way_to_whom(at: Scheduled, first: str, then: str, left: str) -> None:
    """One host, and two who want all of it."""
    at.nodes(1)
    at.pod("first", 8, priorityClassName=first)
    at.until(lambda: list(at.places()) == ["first"])
    at.pod("then", 8, priorityClassName=then)
    if left == "then":
        at.until(lambda: list(at.places()) == ["then"])
        return
    # The scheduler has tried, and says so.
    path = "/api/v1/namespaces/default/pods/then"
    at.until(lambda: bool(at.world.call("GET", path)["status"].get("conditions")))
    assert list(at.places()) == ["first"]


def test_pods_that_name_no_class_are_normal(at: Scheduled) -> None:
    at.nodes(1)
    at.pod("p", 1)
    assert at.world.call("GET", "/api/v1/namespaces/default/pods/p")["spec"]["priority"] == 1000
