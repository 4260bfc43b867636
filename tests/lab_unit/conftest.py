"""A lab for unit tests: its state in a folder, without processes, namespaces or mounts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.lab import cgroups, state


@pytest.fixture
def add_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """add_host("api-1"): record a host that was created and is dead."""
    monkeypatch.setenv("MENAGERIE_LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(cgroups, "hierarchies", lambda: ())

    def add(*names: str) -> None:
        for name in names:
            record = {"kind": "cloud", "address": "10.77.0.11", "segment": "cloud", "cables": []}
            state.write(state.folder("hosts", name, "host.json"), record)

    return add
