"""Waiting: until it comes, or with what was missing and a way out."""

from __future__ import annotations

from typing import Any

import pytest

from cli.failures import explain
from clients.waiting import api_missing, late, nodes_missing, wait_until
from cluster import preflight
from cluster.errors import TimedOutError
from tests.operations.conftest import FakeAccess, FakeServer, outputs


def test_waiting_ends_when_nothing_is_missing_and_tells_each_reason_once() -> None:
    reasons, told = ["a", "a", "b", ""], list[str]()
    wait_until(lambda: reasons.pop(0), 60, told.append, every_s=0)
    assert told == ["a", "b"]


def test_giving_up_names_what_was_missing_and_the_user_is_told_where_to_look() -> None:
    with pytest.raises(TimedOutError, match="gave up after 0 s: etcd-main-1 is away") as raised:
        wait_until(lambda: "etcd-main-1 is away", 0, lambda _: None)
    told = explain(raised.value)
    assert told is not None
    assert told.kind == "timed-out"
    assert "etcd-main-1 is away\n  `./menagerie status` of the cluster shows which part is down" in told.text
    assert 'docs/start/lab.md, "When something does not come up"' in told.text


def test_an_api_that_is_late_says_why_and_one_that_answers_nothing(server: FakeServer) -> None:
    api, told = FakeAccess(outputs(), server.url).api(once=True), list[str]()
    assert late(lambda: api_missing(api), 0, told.append) == "gave up after 0 s: the API server answers 404 Not Found"
    assert told == ["the API server answers 404 Not Found"]
    for path in ("kube-public/configmaps/cluster-info", "kube-system/configmaps/kubelet-config"):
        server.answers[f"/api/v1/namespaces/{path}"] = {"metadata": {}}
    assert late(lambda: api_missing(api), 0, told.append) == ""


TAINT = {"key": preflight.KEY, "effect": "NoSchedule"}
OTHER = {"key": "openai.org/team", "value": "robotics", "effect": "NoSchedule"}


def node(name: str, *taints: dict[str, str], says: str = "", message: str = "", ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    if says:
        reason = "AsExpected" if says == "True" else "GpuMissing"
        conditions.append({"type": preflight.CONDITION, "status": says, "reason": reason, "message": message})
    return {"metadata": {"name": name}, "spec": {"taints": list(taints)}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("nodes", "missing"),
    [
        ([node("a"), node("b", OTHER)], ""),
        ([node("a", says="True"), node("b", says="False")], ""),
        ([node("a"), node("b", TAINT)], "no work yet: b (its preflight has not said anything yet)"),
        (
            [node("a", TAINT, says="True"), node("b")],
            "no work yet: a (its preflight passed, and the API servers have not lifted its taint yet)",
        ),
        (
            [node("a", ready=False), node("b", OTHER, TAINT, says="False", message="7 GPUs on PCI, expected 8")],
            "not Ready yet: a; no work yet: b (its preflight says GpuMissing: 7 GPUs on PCI, expected 8)",
        ),
        ([node("b", ready=False)], "not Ready yet: a, b"),
        ([node("a"), node("b"), node("c", TAINT)], ""),
    ],
)
def test_nodes_are_waited_for_until_they_take_work_and_why_they_do_not_is_told(
    server: FakeServer, nodes: list[dict[str, Any]], missing: str
) -> None:
    server.answers = {"/api/v1/nodes": {"items": nodes}}
    assert nodes_missing(FakeAccess(outputs(), server.url).api(), frozenset("ab")) == missing
