"""Following this node's pods: events of a watch, and a server that ends it, refuses it, or is not there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import pytest
from menagerie_traffic import Refused, api
from menagerie_traffic.api import Api, Following, Pod, applied


def item(uid: str, namespace: str = "team-a", host_network: bool = False, **annotations: str) -> dict[str, Any]:
    metadata = {"uid": uid, "namespace": namespace, "name": f"pod-{uid}", "annotations": annotations}
    return {"metadata": metadata, "spec": {"hostNetwork": host_network}}


def event(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": body}


def test_events_add_change_and_remove_pods() -> None:
    pods = applied({}, event("ADDED", item("1")))
    assert pods == {"1": Pod("1", "team-a", "pod-1", False)}
    pods = applied(pods, event("MODIFIED", item("1", host_network=True)))
    assert pods["1"].host_network
    assert applied(pods, event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})) == pods
    assert applied(pods, event("DELETED", item("1"))) == {}


def test_a_static_pod_has_the_uid_that_its_node_uses() -> None:
    mirror = item("of-the-mirror", **{"kubernetes.io/config.hash": "of-the-node"})
    assert list(applied({}, event("ADDED", mirror))) == ["of-the-node"]


def test_a_watch_that_is_too_old_starts_again() -> None:
    with pytest.raises(Refused, match="too old resource version"):
        applied({}, event("ERROR", {"code": 410, "message": "too old resource version: 1 (2)"}))


class Answers(Api):
    """The API with these answers, in order: texts, or errors. It records what it was asked."""

    def __init__(self, *answers: str | Exception) -> None:
        super().__init__()
        self.left, self.asked = list(answers), []

    def node(self) -> str:
        return "worker-1"

    def _asked(self, path: str, timeout_s: float = 0) -> Any:
        self.asked.append(path)
        if not self.left:
            threading.Event().wait()  # a watch without events
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return _Text(answer)


class _Text:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(self.lines)

    def read(self) -> str:
        return "\n".join(self.lines)


def listed(*items: dict[str, Any]) -> str:
    return json.dumps({"items": items, "metadata": {"resourceVersion": "41"}})


def test_only_this_nodes_pods_are_asked_for_and_the_watch_begins_where_the_list_ended() -> None:
    answers = Answers(listed(item("1")), json.dumps(event("ADDED", item("2"))) + "\n")
    heard: list[set[str]] = []
    answers.watch(lambda pods: heard.append(set(pods)))
    assert heard == [{"1"}, {"1", "2"}]
    assert answers.asked[0] == "/api/v1/pods?fieldSelector=spec.nodeName%3Dworker-1"
    assert answers.asked[1].startswith(f"{answers.asked[0]}&watch=true&")
    assert answers.asked[1].endswith("&resourceVersion=41")


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Following, list[str]]]:
    monkeypatch.setattr(api, "RETRY_S", 0.01)

    def start(*answers: str | Exception) -> tuple[Following, list[str]]:
        lines: list[str] = []
        result = Following(Answers(*answers), threading.Event(), lines.append)
        result.start()
        return result, lines

    return start


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_last_list_stays_while_the_api_does_not_answer_and_each_cause_is_reported_once(following) -> None:
    down = [ConnectionRefusedError(111, "refused")] * 3
    ended = json.dumps(event("ERROR", {"message": "expired"}))
    result, lines = following(listed(item("1")), "", *down, listed(item("2")), ended, listed(item("3")))
    until(lambda: list(result.pods or ()) == ["3"])
    assert [line.partition("; ")[0] for line in lines] == [
        "pods are not followed: [Errno 111] refused",
        "pods are not followed: the watch ended: expired",
    ]


def test_before_the_first_list_nothing_is_known(following) -> None:
    result, lines = following(Refused("not a node yet: no file"), Refused("not a node yet: no file"))
    until(lambda: bool(lines))
    assert (result.pods, result.heard_at) == (None, 0.0)


def test_a_host_that_is_no_node_yet_says_so(tmp_path) -> None:
    with pytest.raises(Refused, match="not a node yet"):
        Api(str(tmp_path / "kubelet.conf"), str(tmp_path / "none.pem")).node()
