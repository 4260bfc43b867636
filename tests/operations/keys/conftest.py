"""One region for all tests in this folder: a ring starts in the state where the previous test left it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from cluster.spec import Cluster
from tests.operations.keys.region import Region, region
from tests.ports import own_network
from tests.sharing import shared


@pytest.fixture
def world(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Region:
    def begun() -> AbstractContextManager[Region]:
        cluster = build(
            {
                "network": {"nodes": own_network()},
                "control_plane": {"api_servers": 1},
                "etcd": {"events": {"members": 1}},
            }
        )
        return region(cluster, tmp_path_factory.mktemp("region"))

    return shared("region", begun)
