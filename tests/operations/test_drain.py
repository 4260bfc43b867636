"""Drains on a real API server, with the real controllers of budgets and replicas."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from operations import drain
from operations.drain import DrainMark, DrainTimedOutError, OutOfServiceError, Rules, cordon, mark_of, uncordon
from tests.operations.real_cluster import World
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("real_cluster")
MARK = DrainMark("reboot", "a test")
SOON = Rules(timeout_s=4)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "AGAIN_S", 0.5)


def owned(kind: str, name: str = "x") -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "0", "controller": True}
    return {"ownerReferences": [owner]}


def schedulable(real: World, name: str) -> bool:
    return not real.core.read_node(name).spec.unschedulable


def test_pods_move_and_the_node_s_own_pods_stay(real: World) -> None:
    real.add("a")
    real.replicas("web", 3)
    until(lambda: real.ready("web") == 3, seconds=30)
    real.pod("agent", "a", **owned("DaemonSet"))
    real.pod("static", "a", **owned("Node"), annotations={"kubernetes.io/config.mirror": "x"})
    real.pod("ended", "a")
    real.end("ended")
    real.add("b")
    api, lines = real.api(), []
    cordon(api, "a", MARK)
    drain.drain(api, "a", Rules(timeout_s=30), lines.append)
    assert real.pods("a") == ["agent", "ended", "static"]
    until(lambda: real.ready("web") == 3, seconds=30)
    assert len(real.pods("b")) == 3
    assert lines[0].startswith("3 pods are left on a")


def test_a_pod_of_the_same_name_elsewhere_is_not_evicted_in_its_place(real: World) -> None:
    """Replace the pod as a StatefulSet does, between the read of the node and the eviction."""
    real.add("a")
    real.add("b")
    real.pod("db-0", "a", **owned("StatefulSet"))
    (pod,) = drain.pods_on(real.api(), "a")
    real.core.delete_namespaced_pod("db-0", "default", grace_period_seconds=0)
    until(lambda: real.pods() == [], seconds=30)
    real.pod("db-0", "b", **owned("StatefulSet"))
    assert drain.evict(real.api(), pod) == ""
    assert real.core.read_namespaced_pod("db-0", "default").metadata.deletion_timestamp is None


def test_a_budget_is_respected_while_pods_move(real: World) -> None:
    real.add("a")
    real.replicas("web", 3)
    until(lambda: real.ready("web") == 3, seconds=30)
    real.budget("all-but-one", "web", 2)
    real.add("b")
    api, least, lines = real.api(), [], []

    def pause(seconds: float) -> None:
        least.append(real.ready("web"))
        time.sleep(min(seconds, 0.2))

    cordon(api, "a", MARK)
    drain.drain(api, "a", Rules(timeout_s=60), lines.append, pause)
    assert real.pods("a") == []
    assert min(least) >= 2
    assert any("The disruption budget all-but-one needs 2 healthy pods and has 2 currently" in line for line in lines)


def test_the_blocker_is_named_at_the_time_out_and_the_pod_stays(real: World) -> None:
    real.add("a")
    real.replicas("web", 1)
    until(lambda: real.ready("web") == 1, seconds=30)
    real.budget("always", "web", 1)
    cordon(real.api(), "a", MARK)
    (pod,) = real.pods("a")
    with pytest.raises(
        DrainTimedOutError, match=f"a was not empty after 1 s: default/{pod} can't be evicted: .*budget always "
    ):
        drain.drain(real.api(), "a", Rules(timeout_s=1))
    assert real.pods("a") == [pod]


def test_a_pod_with_two_budgets_can_never_be_evicted_and_is_reported(real: World) -> None:
    real.add("a")
    real.replicas("web", 1)
    until(lambda: real.ready("web") == 1, seconds=30)
    real.budget("one", "web", 0)
    real.budget("two", "web", 0)
    cordon(real.api(), "a", MARK)
    with pytest.raises(DrainTimedOutError, match="can't be evicted: .*more than one PodDisruptionBudget"):
        drain.drain(real.api(), "a", Rules(timeout_s=1))


def test_a_pod_that_does_not_end_is_reported(real: World) -> None:
    real.add("a")
    real.held.add("stuck")
    real.pod("stuck", "a", **owned("ReplicaSet"))
    with pytest.raises(DrainTimedOutError, match="default/stuck is ending, within 1 s; its kubelet"):
        drain.drain(real.api(), "a", Rules(timeout_s=1))


def test_pods_without_a_controller_are_refused_before_any_eviction(real: World) -> None:
    real.add("a")
    real.pod("moves", "a", **owned("ReplicaSet"))
    real.pod("bare", "a")
    with pytest.raises(OutOfServiceError, match="a has pods that would be lost: default/bare: it has no controller"):
        drain.drain(real.api(), "a", SOON)
    assert real.pods("a") == ["bare", "moves"]
    drain.drain(real.api(), "a", Rules(timeout_s=20, unmanaged=True))
    assert real.pods("a") == []


def test_files_on_the_node_are_deleted_with_their_pod_unless_the_rules_forbid_it(real: World) -> None:
    real.add("a")
    real.pod("scratch", "a", **owned("ReplicaSet"), volumes=[{"name": "s", "emptyDir": {}}])
    with pytest.raises(OutOfServiceError, match=r"default/scratch: it has files on the node \(emptyDir\)"):
        drain.drain(real.api(), "a", Rules(empty_dir=False))
    drain.drain(real.api(), "a", Rules(timeout_s=20))
    assert real.pods("a") == []


def test_pods_of_jobs_may_finish_if_the_rules_allow_it(real: World) -> None:
    real.add("a")
    real.pod("train", "a", **owned("Job"))
    with pytest.raises(DrainTimedOutError, match="default/train belongs to a Job and may finish"):
        drain.drain(real.api(), "a", Rules(timeout_s=1, wait_for_jobs=True))
    assert real.pods("a") == ["train"]
    lines: list[str] = []

    def finish(_: float) -> None:
        real.end("train")

    drain.drain(real.api(), "a", Rules(timeout_s=20, wait_for_jobs=True), lines.append, finish)
    assert real.core.read_namespaced_pod("train", "default").metadata.deletion_timestamp is None
    drain.drain(real.api(), "a", SOON)


def test_a_mark_says_who_and_why_and_is_found_again(real: World) -> None:
    real.add("a")
    made = cordon(real.api(), "a", DrainMark("reboot", "new kernel"))
    assert (made.cordoned, schedulable(real, "a")) == (True, False)
    # A resumed run finds what the first one wrote.
    assert cordon(real.api(), "a", DrainMark("reboot", "again")) == made
    with pytest.raises(OutOfServiceError, match=r"a has been out of service since 20.* \(reboot: new kernel\)"):
        cordon(real.api(), "a", DrainMark("repair", "GPU 3"))
    assert uncordon(real.api(), "a", "repair") is False
    assert not schedulable(real, "a")
    assert uncordon(real.api(), "a", "reboot") is True
    assert (schedulable(real, "a"), mark_of(real.core.read_node("a"))) == (True, None)
    assert uncordon(real.api(), "a", "reboot") is False


def test_a_node_that_someone_else_cordoned_stays_cordoned(real: World) -> None:
    real.add("a")
    real.merge("/api/v1/nodes/a", {"spec": {"unschedulable": True}})
    assert cordon(real.api(), "a", MARK).cordoned is False
    assert uncordon(real.api(), "a", "reboot") is True
    assert (schedulable(real, "a"), mark_of(real.core.read_node("a"))) == (False, None)


def test_a_node_that_was_uncordoned_meanwhile_is_cordoned_again(real: World) -> None:
    real.add("a")
    made = cordon(real.api(), "a", MARK)
    real.merge("/api/v1/nodes/a", {"spec": {"unschedulable": None}})
    assert cordon(real.api(), "a", MARK) == made
    assert not schedulable(real, "a")


def test_a_concurrent_change_between_read_and_patch_is_not_lost(real: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real.add("a")
    read, raced = drain.client.CoreV1Api.read_node, []

    def racing(self: Any, name: str, **more: Any) -> Any:
        node = read(self, name, **more)
        if not raced:
            raced.append(name)
            real.merge(
                "/api/v1/nodes/a", {"metadata": {"annotations": {drain.MARK: json.dumps({"by": "repair", "why": "x"})}}}
            )
        return node

    monkeypatch.setattr(drain.client.CoreV1Api, "read_node", racing)
    with pytest.raises(OutOfServiceError, match=r"\(repair: x\)"):
        cordon(real.api(), "a", MARK)
    assert schedulable(real, "a")


def test_a_mark_that_can_not_be_read_belongs_to_no_verb(real: World) -> None:
    real.add("a")
    real.merge("/api/v1/nodes/a", {"metadata": {"annotations": {drain.MARK: "yes"}}})
    with pytest.raises(
        OutOfServiceError, match=r"since an unknown time \(somebody: the annotation .* can't be read: yes\)"
    ):
        cordon(real.api(), "a", MARK)


def test_a_missing_node_is_an_error(real: World) -> None:
    with pytest.raises(ApiException, match="404"):
        cordon(real.api(), "ghost", MARK)
