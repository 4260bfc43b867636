"""node-preflight: which verdicts remove the taint, which set it again, and what it may do in the API."""

from __future__ import annotations

import json

import pytest

from cluster.preflight import USER
from components.control_plane import preflight
from components.control_plane.host.api import ApiError
from components.control_plane.host.preflight import Gate, desired_taints, patch

NOW = 1760000000.0  # 2025-10-09T08:53:20Z
OTHER = {"key": "openai.org/team", "value": "robotics", "effect": "NoSchedule"}
OURS = {"key": "menagerie.dev/preflight", "effect": "NoSchedule"}


def node(status=None, taints=(), heartbeat="2025-10-09T08:50:00Z", created="2025-10-01T00:00:00Z", **more):
    conditions = [{"type": "Ready", "status": "True"}]
    if status:
        verdict = {
            "type": "PreflightPassed",
            "status": status,
            "reason": "R",
            "message": "m",
            "lastHeartbeatTime": heartbeat,
        }
        conditions.append(verdict | more)
    return {
        "metadata": {"name": "w-1", "uid": "u", "resourceVersion": "7", "creationTimestamp": created},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"conditions": conditions},
    }


def test_a_fresh_good_verdict_removes_the_taint_and_no_other():
    assert desired_taints(node("True", [OURS]), NOW) == []
    assert desired_taints(node("True", [OTHER, OURS]), NOW) == [OTHER]


def test_a_bad_verdict_sets_the_taint_again_and_a_busy_host_keeps_its_pods():
    assert desired_taints(node("False", [OTHER]), NOW) == [OTHER, OURS]
    assert desired_taints(node("False"), NOW) == [OURS]
    assert OURS["effect"] == "NoSchedule"


@pytest.mark.parametrize(
    "existing",
    [
        node(None, [OURS]),  # no verdict yet
        node("False", [OURS]),  # bad, and tainted
        node("True"),  # good, and free
        node(None),  # from before preflight existed
        node("Unknown", [OURS]),
        node("Unknown"),
    ],
)
def test_there_is_nothing_to_do(existing):
    assert desired_taints(existing, NOW) is None


@pytest.mark.parametrize(
    ("heartbeat", "why"),
    [
        ("2025-10-09T08:20:00Z", "older than half an hour"),
        ("2025-10-09T09:00:00Z", "from the future"),
        ("yesterday", "unreadable"),
        (None, "missing"),
    ],
)
def test_a_stale_or_future_verdict_removes_nothing(heartbeat, why):
    assert desired_taints(node("True", [OURS], heartbeat=heartbeat), NOW) is None, why


def test_a_verdict_of_an_earlier_node_of_the_same_name_removes_nothing():
    assert desired_taints(node("True", [OURS], created="2025-10-09T08:52:00Z"), NOW) is None


def test_a_bad_verdict_counts_however_old_it_is():
    assert desired_taints(node("False", heartbeat="2020-01-01T00:00:00Z"), NOW) == [OURS]


def test_a_node_that_changed_meanwhile_is_left_alone():
    assert patch(node("True", [OURS]), []) == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/spec/taints", "value": []},
    ]


class FakeApi:
    def __init__(self, status=0, nodes=(), changed=()):
        self.calls, self.status, self.nodes, self.changed = [], status, nodes, changed

    def call(self, method, path, body=None, kind="application/json"):
        self.calls.append((method, path, kind))
        if method == "PATCH" and self.status:
            raise ApiError(self.status, "no")
        return {"items": list(self.nodes), "metadata": {"resourceVersion": "9"}}

    def watch(self, path, version, for_s=300):
        self.calls.append(("WATCH", f"{path} since {version}", ""))
        return iter(self.changed)


def test_actions_are_reported_once_with_the_reason(capsys):
    api = FakeApi()
    Gate(api).decide(node("True", [OURS]), NOW)
    Gate(api).decide(node("True"), NOW)
    assert api.calls == [("PATCH", "/api/v1/nodes/w-1", "application/json-patch+json")]
    assert capsys.readouterr().out == "w-1: menagerie.dev/preflight lifted: R: m\n"
    Gate(api).decide(node("False"), NOW)
    assert capsys.readouterr().out == "w-1: menagerie.dev/preflight set again: R: m\n"


@pytest.mark.parametrize("status", [404, 409, 422])
def test_losing_a_race_is_no_error(status):
    Gate(FakeApi(status)).decide(node("True", [OURS]), NOW)


def test_a_refusal_of_the_api_is_an_error():
    with pytest.raises(ApiError):
        Gate(FakeApi(403)).decide(node("True", [OURS]), NOW)


def test_all_nodes_are_checked_first_and_then_changes(monkeypatch):
    monkeypatch.setattr("components.control_plane.host.preflight.time.time", lambda: NOW)
    api = FakeApi(nodes=[node("True", [OURS]), node("True")], changed=[node("False")])
    Gate(api).follow()
    assert [call[:2] for call in api.calls] == [
        ("GET", "/api/v1/nodes?resourceVersion=0"),
        ("PATCH", "/api/v1/nodes/w-1"),
        ("WATCH", "/api/v1/nodes since 9"),
        ("PATCH", "/api/v1/nodes/w-1"),
    ]


@pytest.mark.parametrize("left_out", ["reason", "message", "lastHeartbeatTime", "status"])
def test_a_condition_without_a_field_does_not_stop_other_nodes(monkeypatch, left_out):
    """A kubelet may leave them out: the API requires only type and status."""
    monkeypatch.setattr("components.control_plane.host.preflight.time.time", lambda: NOW)
    odd, other = node("True", [OURS]), node("True", [OURS])
    del odd["status"]["conditions"][1][left_out]
    odd["metadata"]["uid"], other["metadata"]["name"] = "odd", "w-2"
    api = FakeApi(nodes=[odd, other])
    Gate(api).follow()
    assert ("PATCH", "/api/v1/nodes/w-2", "application/json-patch+json") in api.calls


def test_a_node_that_the_api_refuses_does_not_stop_others(monkeypatch):
    monkeypatch.setattr("components.control_plane.host.preflight.time.time", lambda: NOW)
    other = node("True", [OURS])
    other["metadata"] |= {"name": "w-2", "uid": "other"}
    api = FakeApi(403, nodes=[node("True", [OURS]), other])
    Gate(api).follow()
    assert [path for method, path, _ in api.calls if method == "PATCH"] == ["/api/v1/nodes/w-1", "/api/v1/nodes/w-2"]


def test_a_hosts_message_is_written_on_one_line_without_control_characters(capsys):
    Gate(FakeApi()).decide(node("True", [OURS], message="a\n\x1b[2Jw-2: lifted"), NOW)
    assert capsys.readouterr().out.count("\n") == 1


def test_it_may_only_read_and_patch_nodes():
    role, binding, policy, bound = preflight.objects()
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch", "watch"]}]
    assert binding["subjects"] == [{"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}]
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert bound["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert "*" not in json.dumps(preflight.objects())
