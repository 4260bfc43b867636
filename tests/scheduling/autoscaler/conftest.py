"""A real API server with scheduler and controllers for tests that use `real`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.autoscaler import LEASE
from controllers.autoscaler.keys import NOTEBOOK
from operations import removals
from operations.record import store
from tests.operations.real_cluster import World, world
from tests.operations.repairs import joined
from tests.sharing import shared


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "STATE", tmp_path / "kept")


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The lab's three workers, without any memory of earlier tests."""
    cluster = shared("cluster", lambda: world(tmp_path_factory.mktemp("cluster")))
    for name in (NOTEBOOK, removals.NAME):
        cluster.server.call("DELETE", f"/api/v1/namespaces/kube-system/configmaps/{name}")
    cluster.server.call("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}")
    cluster.server.call("DELETE", "/api/v1/namespaces/default/events")
    yield joined(cluster)
    cluster.clear()
