"""One region for the tests of this folder: rings that they rotate begin where the test before ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from cluster.spec import Cluster
from tests.operations.keys.region import Region, region


@pytest.fixture(scope="session")
def world(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    # Every address of 127.0.0.0/8 is this machine's; the process id keeps parallel runs apart.
    pid = os.getpid()
    nodes = f"127.{100 + pid // 256 % 100}.{pid % 256}.0/24"
    cluster = build(
        {
            "network": {"nodes": nodes},
            "control_plane": {"api_servers": 1},
            "etcd": {"events": {"members": 1}},
        }
    )
    with region(cluster, tmp_path_factory.mktemp("region")) as made:
        yield made
