"""Google Cloud is a server made after its documentation, behind the door."""

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
    """With the groups of the cluster's pool, as the stack makes them, of two machines in all."""
    made = Google()
    for zone, size in zip(ZONES, (1, 1, 0), strict=True):
        made.add(zone, f"gibbon-cpu-{zone}", worker(gibbon, "cpu"), size)
    return made


@pytest.fixture
def nobody(google: Google, opened: Callable[[Upstream], Door]) -> Door:
    """Without credentials."""
    return opened(google.answer)


@pytest.fixture
def door(nobody: Door, monkeypatch: pytest.MonkeyPatch) -> Door:
    """With a token in the environment, as the stack's provider takes one."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("GOOGLE_PROJECT", "a-project")
    return nobody
