"""A real API server for all tests of a process, and records of operations that are of one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.record import store
from tests.tenancy.real import Server, serving


@pytest.fixture(scope="session")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("tenancy")) as made:
        yield made


@pytest.fixture
def server(_server: Server) -> Iterator[Server]:
    """An API without namespaces of anybody."""
    yield _server
    _server.clear()


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "STATE", tmp_path / "kept")
