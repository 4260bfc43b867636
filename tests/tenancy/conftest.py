"""A real API server shared by the tests of a group, and records of operations per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.record import store
from tests.sharing import shared
from tests.tenancy.real import Server, serving


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The API server, without namespaces of tenants."""
    server_ = shared("tenancy", lambda: serving(tmp_path_factory.mktemp("tenancy")))
    yield server_
    server_.clear()


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "STATE", tmp_path / "kept")
