"""The pods of the proofs: where they run, and that nothing is left of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from cluster.errors import TimedOutError
from operations.verify import workload as room
from operations.verify.workload import workload

NODES = frozenset({"worker-1", "worker-2"})
LAST = SimpleNamespace(_continue=None)
"""The metadata of a list's last page."""


class FakeApi:
    """CoreV1Api and AppsV1Api in one. namespaces: name -> whether it is being deleted. failing: refused calls."""

    def __init__(self) -> None:
        self.namespaces: dict[str, bool] = {}
        self.failing: set[str] = set()
        self.ready: list[str] = []

    def _refuse(self, call: str) -> None:
        if call in self.failing:
            raise ApiException(status=503, reason=call)

    def create_namespace(self, body: dict[str, Any], **_: object) -> Any:
        self._refuse("namespace")
        name = body["metadata"]["generateName"] + "x"
        self.namespaces[name] = False
        return SimpleNamespace(metadata=SimpleNamespace(name=name))

    def create_namespaced_daemon_set(self, namespace: str, body: dict[str, Any], **_: object) -> None:
        assert not self.namespaces[namespace]
        self._refuse("daemon set")

    def create_namespaced_service(self, namespace: str, body: dict[str, Any], **_: object) -> None:
        self._refuse("service")

    def list_namespace(self, label_selector: str, **_: object) -> Any:
        assert label_selector == "app.kubernetes.io/managed-by=menagerie-verify"
        self._refuse("list")
        namespaces = [
            SimpleNamespace(
                metadata=SimpleNamespace(name=name, namespace=None, deletion_timestamp="now" if dying else None)
            )
            for name, dying in self.namespaces.items()
        ]
        return SimpleNamespace(items=namespaces, metadata=LAST)

    def delete_namespace(self, name: str, **_: object) -> None:
        assert not self.namespaces[name]
        self.namespaces[name] = True

    def list_namespaced_pod(self, *_: object, **__: object) -> Any:
        def pod(node: str) -> Any:
            condition = SimpleNamespace(type="Ready", status="True" if node in self.ready else "False")
            return SimpleNamespace(
                metadata=SimpleNamespace(name=f"probe-{node}", namespace="x"),
                spec=SimpleNamespace(node_name=node),
                status=SimpleNamespace(pod_ip="10.200.0.2", conditions=[condition]),
            )

        return SimpleNamespace(items=[pod(node) for node in sorted(NODES)], metadata=LAST)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()
    monkeypatch.setattr(room, "client", SimpleNamespace(CoreV1Api=lambda _: fake, AppsV1Api=lambda _: fake))
    return fake


def test_the_namespace_is_deleted_at_the_end_and_those_of_killed_runs_at_the_start(api: FakeApi) -> None:
    api.namespaces = {"menagerie-verify-killed": False, "menagerie-verify-dying": True}
    with workload(None, NODES, lambda _: None) as running:
        assert running.namespace == "menagerie-verify-x"
        assert api.namespaces == {
            "menagerie-verify-killed": True,
            "menagerie-verify-dying": True,
            "menagerie-verify-x": False,
        }
    assert api.namespaces["menagerie-verify-x"]


@pytest.mark.parametrize("call", ["daemon set", "service"])
def test_the_namespace_is_deleted_if_its_objects_can_not_be_created(api: FakeApi, call: str) -> None:
    api.failing = {call}
    with pytest.raises(ApiException, match=call), workload(None, NODES, lambda _: None):
        pass
    assert api.namespaces == {"menagerie-verify-x": True}


def test_an_api_that_is_gone_at_the_end_hides_no_error(api: FakeApi) -> None:
    with workload(None, NODES, lambda _: None):
        api.failing = {"list"}
    assert api.namespaces == {"menagerie-verify-x": False}


def test_pods_of_all_nodes_are_returned_when_they_are_ready(api: FakeApi) -> None:
    api.ready = ["worker-1", "worker-2"]
    with workload(None, NODES, lambda _: None) as running:
        assert set(running.pods()) == NODES


def test_a_node_without_a_ready_pod_is_named_and_waited_for_only_once(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    clock = iter([0.0, 0.0, 100.0, 500.0])
    monkeypatch.setattr(room, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    def wait_until(missing: Any, timeout_s: float, _: object) -> None:
        waited.append(timeout_s)
        raise TimedOutError(missing())

    monkeypatch.setattr(room, "wait_until", wait_until)
    api.ready = ["worker-1"]
    with workload(None, NODES, lambda _: None) as running:
        for _ in range(3):
            with pytest.raises(TimedOutError, match="no ready pod on worker-2"):
                running.pods()
    assert waited == [120.0, 20.0, 0.0]
