"""Google Cloud is a fake that follows its documentation, behind the door."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from tests.scheduling.clouds.door import Door, Upstream
from tests.scheduling.clouds.fake_google import TOKEN, Google
from tests.scheduling.clouds.gcp.support import ROOT, ZONES, worker


@pytest.fixture(scope="module")
def gibbon() -> Cluster:
    return load_cluster(ROOT / "examples/gcp-small/cluster.yaml")


@pytest.fixture
def google(gibbon: Cluster) -> Google:
    """A fake with the groups of the cluster's pool, as the stack makes them, with two machines in total."""
    fake = Google()
    for zone, size in zip(ZONES, (1, 1, 0), strict=True):
        fake.add(zone, f"gibbon-cpu-{zone}", worker(gibbon, "cpu"), size)
    return fake


@pytest.fixture
def nobody(google: Google, opened: Callable[[Upstream], Door]) -> Door:
    """The door, without credentials."""
    return opened(google.answer)


@pytest.fixture
def door(nobody: Door, monkeypatch: pytest.MonkeyPatch) -> Door:
    """The door, with a token in the environment as for the stack's provider."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("GOOGLE_PROJECT", "a-project")
    return nobody
