from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from network.gateway import RouterConfig
from tests import debian
from tests.vpn import world as worlds
from tests.vpn.world import World

LIST = Path(__file__).with_name("packages.txt")


@pytest.fixture(scope="session")
def programs() -> Path:
    """Return the folder with strongSwan and FRR, unpacked."""
    if os.geteuid():
        pytest.skip("only root makes machines of namespaces")
    names = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    try:
        return debian.tree(names)
    except debian.Unavailable as reason:
        pytest.skip(f"no strongSwan and FRR: {reason}")


@pytest.fixture(scope="session")
def router(build) -> RouterConfig:
    return worlds.router(build)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, programs: Path, router: RouterConfig) -> Iterator[World]:
    """Yield both clusters and the site, with their tunnels up."""
    machines = World(tmp_path_factory.mktemp("vpn"), programs, router)
    machines.connect()
    yield machines
    machines.end()
