"""The condition that a host writes into its Node, and its requests to the API."""

from __future__ import annotations

import json
import sys

import pytest

from cluster import preflight as names

NOW = 1760000000.0


@pytest.fixture(scope="module")
def node(preflight):
    return preflight.node


def finding(preflight, level="fail", reason="GpuMissing", text="7 GPUs"):
    return preflight.Finding("gpus", reason, text, level)


def test_a_healthy_host_reports_true(node):
    assert node.condition({}, [], NOW, "dgx-h100") == {
        "type": "PreflightPassed",
        "status": "True",
        "reason": "AsExpected",
        "message": "as expected of dgx-h100",
        "lastHeartbeatTime": "2025-10-09T08:53:20Z",
        "lastTransitionTime": "2025-10-09T08:53:20Z",
    }


def test_a_faulty_host_reports_false_with_the_worst_reason_first(node, preflight):
    notes = [finding(preflight, "watch", "XidReported", "Xid 63"), finding(preflight)]
    condition = node.condition({}, notes, NOW, "dgx-h100")
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "GpuMissing", "7 GPUs; Xid 63")


def test_a_watched_finding_is_reported_but_does_not_fail_the_host(node, preflight):
    condition = node.condition({}, [finding(preflight, "watch", "XidReported", "Xid 63")], NOW, "x")
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "AsExpected", "Xid 63")


def test_a_check_without_a_verdict_reports_unknown(preflight, tmp_path):
    settings = tmp_path / preflight.host.SETTINGS.lstrip("/")
    settings.parent.mkdir(parents=True)
    settings.write_text("{broken")
    api = Api({"metadata": {"name": "gpu-017"}}, [])
    main = sys.modules["menagerie_preflight.__main__"]
    assert main.report(preflight.host.Host(str(tmp_path)), api, "gpu-017") == "Unknown"
    (condition,) = api.calls[-1][2]["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("Unknown", "CheckFailed")
    assert "Expecting property name" in condition["message"]
    assert not (tmp_path / preflight.host.PASSED.lstrip("/")).exists()


@pytest.mark.parametrize(("expected", "result"), [({}, "True"), ({"sockets": 64}, "False")])
def test_a_result_is_kept_for_the_hosts_metrics(preflight, tmp_path, expected, result):
    settings = tmp_path / preflight.host.SETTINGS.lstrip("/")
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"expected": expected}))
    main = sys.modules["menagerie_preflight.__main__"]
    for _ in range(2):
        assert main.report(preflight.host.Host(str(tmp_path)), Api({"metadata": {}}, []), "gpu-017") == result
    path = tmp_path / preflight.host.PASSED.lstrip("/")
    assert (path.read_text(), list(path.parent.iterdir())) == (f"{result}\n", [path])


def test_the_hosts_metrics_look_for_the_result_where_it_is_kept(preflight):
    from menagerie_node_metrics import host

    assert host.PREFLIGHT == preflight.host.PASSED


@pytest.mark.parametrize(("before", "since"), [("True", "2025-01-01T00:00:00Z"), ("False", "2025-10-09T08:53:20Z")])
def test_the_time_of_the_last_transition_is_kept(node, before, since):
    former = {"type": "PreflightPassed", "status": before, "lastTransitionTime": "2025-01-01T00:00:00Z"}
    other = {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}
    condition = node.condition({"status": {"conditions": [other, former]}}, [], NOW, "x")
    assert condition["lastTransitionTime"] == since


def test_a_long_message_is_cut(node, preflight):
    condition = node.condition({}, [finding(preflight, text="x" * 5000)], NOW, "x")
    assert (len(condition["message"]), condition["message"][-4:]) == (1000, " ...")


@pytest.mark.parametrize(
    ("now", "ahead"),
    [(NOW, 0.0), (NOW + 0.9, 0.0), (NOW + 313.0, 312.0), (NOW + 1.5, 0.5), (NOW - 3.0, -3.0)],
)
def test_the_clock_is_compared_with_the_answers_date_in_whole_seconds(node, now, ahead):
    assert node.skew("Thu, 09 Oct 2025 08:53:20 GMT", now) == pytest.approx(ahead)
    assert node.skew(None, now) == 0.0


def pod(name, phase="Running", owner=None):
    owners = [{"kind": owner, "name": "x"}] if owner else []
    return {"metadata": {"name": name, "namespace": "a", "ownerReferences": owners}, "status": {"phase": phase}}


def test_only_pods_that_a_drain_would_move_make_a_host_busy(node):
    pods = [
        pod("agent", owner="DaemonSet"),
        pod("static", owner="Node"),
        pod("done", "Succeeded"),
        pod("failed", "Failed"),
    ]
    assert node.busy({"items": pods}) == []
    assert node.busy({"items": [*pods, pod("train", owner="Job"), pod("bare", "Pending")]}) == ["a/train", "a/bare"]


class Api:
    def __init__(self, node, pods):
        self.calls, self.node, self.pods = [], node, pods

    def call(self, method, path, body=None):
        self.calls.append((method, path, body))
        answers = {"PATCH": None, "GET": {"items": self.pods} if "/pods" in path else self.node}
        return sys.modules["menagerie_preflight.node"].Answer(answers[method], 0.0)


def test_a_verdict_is_written_only_into_the_status_of_its_own_node(preflight, tmp_path):
    api = Api({"metadata": {"name": "gpu-017"}}, [])
    main = sys.modules["menagerie_preflight.__main__"]
    assert main.report(preflight.host.Host(str(tmp_path)), api, "gpu-017") == "True"
    (_, node_path, _), (_, pods, _), (method, path, body) = api.calls
    assert node_path == "/api/v1/nodes/gpu-017"
    assert pods == "/api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-017"
    assert (method, path) == ("PATCH", "/api/v1/nodes/gpu-017/status")
    assert [condition["type"] for condition in body["status"]["conditions"]] == ["PreflightPassed"]
    assert set(body["status"]) == {"conditions"}


def test_a_host_that_is_not_a_node_yet_says_so(node, preflight, tmp_path):
    with pytest.raises(preflight.Unknown, match="not a node yet"):
        node.Api(str(tmp_path / "kubelet.conf"))


def test_programs_of_hosts_use_the_names_of_the_model(preflight):
    from components.control_plane.host import preflight as gate

    assert (preflight.CONDITION, preflight.TAINT) == (names.CONDITION, names.KEY)
    assert preflight.node.condition({}, [], NOW, "x")["message"].startswith(names.AS_EXPECTED)
    assert (gate.CONDITION, gate.KEY) == (names.CONDITION, names.KEY)
    assert gate.TAINT == {key: value for key, value in names.TAINT.model_dump(mode="json").items() if value}
