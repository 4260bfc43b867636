"""The running lab, or one created for these tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from clients.access import ROOT, Access
from cluster.load import find_cluster, load_cluster
from cluster.spec import Cluster
from operations.stack import access_to, has_stack
from tests.lab.support import menagerie


@pytest.fixture(scope="session")
def lab() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("the lab needs root: it creates network namespaces, mounts and cgroups")
    cluster = load_cluster(find_cluster("lab", ROOT))
    was_up = has_stack(cluster)
    if not was_up or menagerie("status", "lab").code:
        result = menagerie("up", "lab", "--json")
        assert result.code == 0, result.err
    yield cluster
    if not was_up:
        menagerie("destroy", "lab", "--yes")


@pytest.fixture(scope="session")
def access(lab: Cluster) -> Access:
    return access_to(lab)
