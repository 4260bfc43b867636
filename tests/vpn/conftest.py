from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from network.gateway import EdgeRouter
from tests.vpn import programs as debian
from tests.vpn import world as worlds
from tests.vpn.world import World


@pytest.fixture(scope="session")
def programs() -> Path:
    """strongSwan and FRR, unpacked."""
    try:
        return debian.tree()
    except debian.Unavailable as reason:
        pytest.skip(f"no strongSwan and FRR: {reason}")


@pytest.fixture(scope="session")
def router(build) -> EdgeRouter:
    return worlds.router(build)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, programs: Path, router: EdgeRouter) -> Iterator[World]:
    """Both clusters and the site, with their tunnels up."""
    made = World(tmp_path_factory.mktemp("vpn"), programs, router)
    made.connect()
    yield made
    made.end()
