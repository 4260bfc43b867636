"""Waiting until nothing is missing, or a time-out with the reason and a way out."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from cli.failures import explain
from clients.waiting import api_missing, late, nodes_missing, wait_until
from cluster import preflight
from cluster.errors import TimedOutError
from tests.operations.conftest import FakeAccess, FakeServer, outputs


def test_waiting_ends_when_nothing_is_missing_and_reports_each_reason_once() -> None:
    reasons, messages = ["a", "a", "b", ""], list[str]()
    wait_until(lambda: reasons.pop(0), 60, messages.append, every_s=0)
    assert messages == ["a", "b"]


def test_a_time_out_names_what_was_missing_and_where_to_look() -> None:
    with pytest.raises(TimedOutError, match="gave up after 0 s: etcd-main-1 is away") as raised:
        wait_until(lambda: "etcd-main-1 is away", 0, lambda _: None)
    explanation = explain(raised.value)
    assert explanation is not None
    assert explanation.kind == "timed-out"
    assert "etcd-main-1 is away\n  `./menagerie status` of the cluster shows which part is down" in explanation.text
    assert 'docs/start/lab.md, "When something does not come up"' in explanation.text


def test_a_late_api_has_a_reason_and_a_responding_one_has_none(server: FakeServer) -> None:
    api, messages = FakeAccess(outputs(), server.url).api(once=True), list[str]()
    assert (
        late(lambda: api_missing(api), 0, messages.append) == "gave up after 0 s: the API server answers 404 Not Found"
    )
    assert messages == ["the API server answers 404 Not Found"]
    for path in ("kube-public/configmaps/cluster-info", "kube-system/configmaps/kubelet-config"):
        server.answers[f"/api/v1/namespaces/{path}"] = {"metadata": {}}
    assert late(lambda: api_missing(api), 0, messages.append) == ""


def test_the_reason_of_a_silent_api_says_whether_its_address_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
    api = FakeAccess(outputs(), closed).api(once=True)
    assert api_missing(api) == "the API server does not answer yet (NewConnectionError)"


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
        ([node("a"), node("b", TAINT)], "no pods yet: b (its preflight has not reported yet)"),
        (
            [node("a", TAINT, says="True"), node("b")],
            "no pods yet: a (its preflight passed, but the API servers have not removed its taint yet)",
        ),
        (
            [node("a", ready=False), node("b", OTHER, TAINT, says="False", message="7 GPUs on PCI, expected 8")],
            "not Ready yet: a; no pods yet: b (its preflight reports GpuMissing: 7 GPUs on PCI, expected 8)",
        ),
        ([node("b", ready=False)], "not Ready yet: a, b"),
        ([node("a"), node("b"), node("c", TAINT)], ""),
    ],
)
def test_nodes_are_waited_for_until_they_accept_pods_with_the_reason_why_they_do_not(
    server: FakeServer, nodes: list[dict[str, Any]], missing: str
) -> None:
    server.answers = {"/api/v1/nodes": {"items": nodes}}
    assert nodes_missing(FakeAccess(outputs(), server.url).api(), frozenset("ab")) == missing
