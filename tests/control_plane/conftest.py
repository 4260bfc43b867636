"""The lab's cluster and variations of it, and the configuration of its API-server hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import HostConfig
from cluster.spec import Cluster
from components.control_plane import host_config
from network.addresses import plan
from tests import programs


@pytest.fixture(scope="session")
def source() -> ArtefactSource:
    return ArtefactSource(mirror=None, sha256={artefact.source: "0" * 64 for artefact in catalogue().values()})


@pytest.fixture(scope="session")
def config(lab: Cluster, source: ArtefactSource) -> HostConfig:
    return host_config(lab, plan(lab), source)


@pytest.fixture(scope="session")
def program() -> Callable[[str], Path]:
    """Return program("kubeadm"), which returns a program's path in the cache and skips the test if it is not built yet."""
    return programs.program
