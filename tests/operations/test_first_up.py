"""The first `up` from a fresh checkout for a cluster that another one has built. No engine runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from clients.access import Access
from cluster.errors import LockedError, RefusedError
from cluster.load import load_cluster
from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from operations import build
from operations.record import one_operation
from tests.operations.conftest import outputs
from tests.operations.test_build import KEYS, Quiet

ROOT = Path(__file__).parents[2]


class Built:
    """A stack in a shared backend, with a fake engine."""

    def __init__(self, *_: object, **__: object) -> None:
        self.known: dict[str, str] = {}

    def outputs(self) -> dict[str, object]:
        bucket = BucketOutput(kind="s3", name="records")
        outputs_ = outputs().model_copy(update={"buckets": {"records": bucket}})
        return {"outputs": outputs_.model_dump_json(), **dict.fromkeys(KEYS, "")}

    def values(self) -> dict[str, str]:
        return self.known

    def configure(self, _: str, key: str, value: str) -> None:
        self.known[key] = value

    def up(self, **_: object) -> None:
        raise AssertionError("the stack was touched")


@pytest.fixture
def horus() -> Cluster:
    return load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout without a state folder for the cluster."""
    for module in ("operations.stack", "operations.build"):
        monkeypatch.setattr(f"{module}.STATE", tmp_path / ".menagerie")
    monkeypatch.setattr("operations.stack.ROOT", tmp_path)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, horus: Cluster) -> Access:
    """The cluster in the team's backend, with API servers of the spec's version. Its bucket is in memory."""
    bucket, version = MemoryStore(), horus.spec.kubernetes.version
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://of-the-team")
    monkeypatch.setattr("stacks.backend._listed", lambda *_: frozenset({"horus"}))
    monkeypatch.setattr("operations.stack.pulumi_cli", lambda _: Path("no-engine"))
    monkeypatch.setattr("stacks.automation.ClusterStack", Built)
    monkeypatch.setattr("operations.record.store.open_bucket", lambda *_: bucket)
    monkeypatch.setattr("operations.upgrade.versions.servers", lambda _: frozenset({version}))
    return Access.from_stack("horus", Built().outputs())


def test_it_leaves_another_release_to_upgrade(monkeypatch: pytest.MonkeyPatch, built: Access, horus: Cluster) -> None:
    monkeypatch.setattr("operations.upgrade.versions.servers", lambda _: frozenset({"1.30.0"}))
    with pytest.raises(RefusedError, match=r"horus runs Kubernetes 1\.30\.0"):
        build.up(horus, Quiet())


def test_it_is_refused_while_an_operation_elsewhere_holds_the_cluster(built: Access, horus: Cluster) -> None:
    with one_operation(horus, built, "etcd restore", "main"), pytest.raises(LockedError, match="etcd restore main"):
        build.up(horus, Quiet())
    with pytest.raises(AssertionError, match="the stack was touched"):
        build.up(horus, Quiet())
