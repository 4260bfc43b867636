"""Azure is a fake that follows its documentation, behind the door."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from tests.scheduling.clouds.azure.support import POOL, ROOT, marks
from tests.scheduling.clouds.door import Door, Upstream
from tests.scheduling.clouds.fake_azure import Microsoft


@pytest.fixture(scope="module")
def koala() -> Cluster:
    return load_cluster(ROOT / "examples/azure-small/cluster.yaml")


@pytest.fixture
def microsoft(koala: Cluster) -> Microsoft:
    """A fake with the scale set of the cluster's pool, as the stack makes it, with four machines."""
    fake = Microsoft()
    fake.add(*POOL, marks(koala), 4)
    return fake


@pytest.fixture
def nobody(microsoft: Microsoft, opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch) -> Door:
    """The door, without credentials."""
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", "a-sub")
    return opened(microsoft.answer)


@pytest.fixture
def door(nobody: Door, monkeypatch: pytest.MonkeyPatch) -> Door:
    """The door, with a service principal's secret in the environment as for the stack's provider."""
    for name, value in (("CLIENT_ID", "a-client"), ("CLIENT_SECRET", "a-secret"), ("TENANT_ID", "a-tenant")):
        monkeypatch.setenv(f"ARM_{name}", value)
    return nobody
