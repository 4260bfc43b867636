"""The command in this process; no test here reaches a real cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cluster import load
from cluster.load import load_cluster
from cluster.spec import Cluster
from tests.cli.terminal import Menagerie, command

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, INVENTORIES = ROOT / "examples", ROOT / "inventories"
LAB = INVENTORIES / "lab"


@pytest.fixture(scope="session", autouse=True)
def _read_once() -> Iterator[None]:
    """Read the checkout's own specs only once, for speed: one has 2500 hosts, and every verb that builds reads it.

    Rules are still checked every time.
    """
    original = load._read

    @cache
    def cached(path: Path, _folder: Path) -> Any:
        return original(path)

    def read(path: Path) -> Any:
        own = any(load.real(path).is_relative_to(folder) for folder in (EXAMPLES, INVENTORIES))
        return cached(path, Path.cwd()) if own else original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "_read", read)
        yield


@pytest.fixture
def menagerie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Menagerie:
    """Run as root, with no cluster built. A verb that would act fails the test."""
    from operations import build

    def act(*_: object, **__: object) -> object:
        raise AssertionError("the verb acted")

    for module in ("cli.actions.fleet", "operations.stack", "operations.build", "operations.record.store"):
        monkeypatch.setattr(f"{module}.STATE", tmp_path / "state")
    for verb in ("up", "preview", "destroy"):
        monkeypatch.setattr(build, verb, act)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.delenv("MENAGERIE_DEBUG", raising=False)

    return command(monkeypatch, capsys)


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., Path]:
    """spec(replacements): write the lab's spec to a temporary folder, with parts of its text replaced."""

    def write(*replacements: tuple[str, str]) -> Path:
        text = (LAB / "cluster.yaml").read_text()
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "hosts.yaml").write_text((LAB / "hosts.yaml").read_text())
        path = tmp_path / "cluster.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let the command work in a checkout whose clusters are the lab and the larger examples."""
    folder = tmp_path / "checkout"
    (folder / "inventories").mkdir(parents=True)
    for cluster in (LAB, *(EXAMPLES / name for name in ("horus", "ibis", "jaguar"))):
        (folder / "inventories" / cluster.name).symlink_to(cluster)
    for module in ("cli.actions.check", "cli.verbs.validate", "cli.specs", "cli.actions.status"):
        monkeypatch.setattr(f"{module}.ROOT", folder)
    return folder


@pytest.fixture(scope="session")
def lab_cluster() -> Cluster:
    return load_cluster(LAB / "cluster.yaml")
