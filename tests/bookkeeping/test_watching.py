"""Lists with a version and what changed since: bookmarks, many events, and versions that the API server has forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from clients.api_errors import ApiStatusError
from clients.watching import ExpiredError, Watching
from tests.bookkeeping.surroundings import Cluster

PODS = "/api/v1/pods"


def thing(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def test_changes_follow_a_list_without_a_gap_and_come_once() -> None:
    cluster = Cluster(0)
    cluster.write(PODS, thing("a"))
    pods = Watching(cluster.api(), "Pod")
    assert [each["metadata"]["name"] for each in pods.everything()] == ["a"]
    cluster.write(PODS, thing("b"))
    cluster.write(PODS, thing("a"), gone=True)
    assert [(change.gone, change.thing["metadata"]["name"]) for change in pods.changes()] == [(False, "b"), (True, "a")]
    assert list(pods.changes()) == []
    assert pods.version == str(cluster.version)


def test_a_kind_in_which_nothing_happens_keeps_up_by_bookmarks() -> None:
    cluster = Cluster(0)
    pods = Watching(cluster.api(), "Pod")
    list(pods.everything())
    for number in range(5):
        cluster.write("/api/v1/nodes", thing(str(number)))
    assert list(pods.changes()) == []
    assert pods.version == str(cluster.version)


def test_after_many_events_another_watch_follows_at_once() -> None:
    cluster = Cluster(0)
    pods = Watching(cluster.api(), "Pod")
    list(pods.everything())
    for number in range(600):
        cluster.write(PODS, thing(str(number)))
    cluster.requests.clear()
    assert len(list(pods.changes())) == 600
    assert cluster.requests == [f"GET {PODS} watch"] * 2


def test_a_forgotten_version_is_said_and_any_other_error_is_the_api_servers() -> None:
    cluster = Cluster(0)
    pods = Watching(cluster.api(), "Pod", "1")
    cluster.forgets = 50
    with pytest.raises(ExpiredError):
        list(pods.changes())
    answer = cluster._answer
    cluster._answer = lambda _: answer(b'{"type":"ERROR","object":{"code":500,"reason":"InternalError"}}\n')  # type: ignore[method-assign]
    with pytest.raises(ApiStatusError, match="500 InternalError"):
        list(pods.changes())
