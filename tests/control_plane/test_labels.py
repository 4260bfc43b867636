"""node-labels: a Node that can't be labelled does not stop others. test_node_policies.py runs it on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from components.control_plane.host.api import ApiError
from components.control_plane.host.following import RETRY_S
from components.control_plane.host.labels import CLAIMED, CONFIGMAPS, NODES, TABLE, TRUSTED, Keeper

ROWS = {"site-1": "kind", "kind": "rack=r1"}


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "1", "labels": labels}}


def in_region(name: str) -> dict[str, Any]:
    return node(name, **{CLAIMED: "cpu"})


class FakeApi:
    """Existing and new Nodes, and the table. refused: the Node whose changes are refused, with a status."""

    def __init__(self, *nodes: dict[str, Any], refused: str = "", status: int = 500) -> None:
        self.nodes, self.table = nodes, dict(ROWS)
        self.coming: list[dict[str, Any]] = []
        self.refused, self.status = refused, status
        self.labelled: list[str] = []
        self.read = 0
        self.watched_s: list[int] = []

    def call(self, method: str, path: str, body: Any = None, kind: str = "") -> Any:
        name = path.rpartition("/")[2]
        if method == "PATCH" and name == self.refused:
            raise ApiError(self.status, "no")
        if method == "PATCH" and path.startswith(NODES):
            self.labelled.append(name)
        if path == f"{CONFIGMAPS}/{TABLE}":
            self.read += 1
            return {"data": dict(self.table)}
        return {"items": self.nodes, "metadata": {"resourceVersion": "1"}}

    def watch(self, path: str, version: str, wait_s: int = 0) -> Iterator[dict[str, Any]]:
        self.watched_s.append(wait_s)
        yield from self.coming


def keeper(api: FakeApi) -> Keeper:
    return Keeper(api)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_node_that_the_api_refuses_to_change_does_not_stop_others(
    status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    api = FakeApi(in_region("w-1"), in_region("w-2"), refused="w-1", status=status)
    api.coming = [in_region("w-1"), in_region("w-3")]
    kept = keeper(api)
    kept.follow()
    kept.follow()
    assert api.labelled == ["w-2", "w-3"] * 2
    assert api.watched_s == [RETRY_S] * 2
    assert capsys.readouterr().out.count(f"w-1: HTTP {status}: no\n") == 1


def test_an_api_that_does_not_authenticate_ends_the_round() -> None:
    with pytest.raises(ApiError):
        keeper(FakeApi(in_region("w-1"), refused="w-1", status=401)).follow()


def test_a_machine_that_joins_right_after_its_line_was_written_gets_its_labels() -> None:
    class LateTable(FakeApi):
        def watch(self, path: str, version: str, wait_s: int = 0) -> Iterator[dict[str, Any]]:
            self.table["site-2"] = "kind"
            yield node("site-2")

    api = LateTable()
    keeper(api).follow()
    assert api.labelled == ["site-2"]


def test_repeated_reports_of_workers_in_the_region_do_not_reload_the_table() -> None:
    settled = node("w-1", **{CLAIMED: "cpu", TRUSTED: "cpu"})
    api = FakeApi(settled)
    api.coming = [settled] * 5
    keeper(api).follow()
    assert api.read == 1
