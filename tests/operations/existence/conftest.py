"""Checkouts with a common state of stacks, and one without any."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pulumi
import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from operations import stack as operation
from tests.cli.terminal import Menagerie, command
from tests.programs import program

ROOT = Path(__file__).resolve().parents[3]
MODULES = (
    "operations.stack",
    "operations.state_move",
    "operations.build",
    "operations.record.store",
    "operations.configure",
    "operations.machines_journal",
)
HORUS = str(ROOT / "examples" / "horus")
THREE = ("a", "b", "c")


@pytest.fixture
def horus() -> Cluster:
    return load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")


@pytest.fixture
def menagerie(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Menagerie:
    """The command, with invalid credentials, in a fresh checkout."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(name, "tests")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", "aws:1")  # none of our plugins is needed or started
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    in_checkout(monkeypatch, tmp_path / "fresh")
    return command(monkeypatch, capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backend where another checkout has built horus, with three resources."""
    cli, folder = program("pulumi"), tmp_path_factory.mktemp("made")
    cluster = load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("operations.stack.pulumi_cli", lambda _: cli)
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "tests")
        patch.setenv("PULUMI_DEBUG_PROVIDERS", "aws:1")
        patch.setenv("PULUMI_BACKEND_URL", f"file://{folder / 'backend'}")
        (folder / "backend").mkdir()
        in_checkout(patch, folder / "other")
        declared(patch)
        operation.make_stack(cluster, lambda _: None).up()
    return folder / "backend"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, menagerie: Menagerie, made: Path, tmp_path: Path) -> Path:
    """Copy the backend, and point the variable to the copy."""
    cli, folder = program("pulumi"), tmp_path / "shared"
    monkeypatch.setattr("operations.stack.pulumi_cli", lambda _: cli)
    shutil.copytree(made, folder)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{folder}")
    return folder


def in_checkout(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for module in MODULES:
        monkeypatch.setattr(f"{module}.STATE", folder / ".menagerie")
    monkeypatch.setattr("operations.stack.ROOT", folder)


def declared(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let stacks declare resources of these names, or three, and a secret."""

    def declare(_: Cluster) -> None:
        for name in names or THREE:
            pulumi.ComponentResource("tests:of:Existence", name)
        pulumi.export("key", pulumi.Output.secret("of-an-etcd"))

    monkeypatch.setattr("stacks.program.declare", declare)
    operation.ROOT.mkdir(exist_ok=True)


def left(backend: Path) -> int:
    """Return the resources of horus in the backend, without the stack itself."""
    files = list((backend / ".pulumi" / "stacks" / "menagerie").glob("horus.json"))
    return sum(len(json.loads(file.read_text())["checkpoint"]["latest"]["resources"]) - 1 for file in files)
