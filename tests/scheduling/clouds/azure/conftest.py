"""Azure is a server made after its documentation, behind the door."""

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
    """With the scale set of the cluster's pool, as the stack makes it, of four machines."""
    made = Microsoft()
    made.add(*POOL, marks(koala), 4)
    return made


@pytest.fixture
def nobody(microsoft: Microsoft, opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch) -> Door:
    """Without credentials."""
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", "a-sub")
    return opened(microsoft.answer)


@pytest.fixture
def door(nobody: Door, monkeypatch: pytest.MonkeyPatch) -> Door:
    """With the secret of a service principal in the environment, as the stack's provider wants it."""
    for name, value in (("CLIENT_ID", "a-client"), ("CLIENT_SECRET", "a-secret"), ("TENANT_ID", "a-tenant")):
        monkeypatch.setenv(f"ARM_{name}", value)
    return nobody
