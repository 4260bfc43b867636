"""The cluster of tests/specs/valid-ceph.yaml, and what its hosts say when all is well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.load import check_paths
from cluster.spec import Cluster
from components.ceph.host import settings

SPEC = Path(__file__).parents[1] / "specs" / "valid-ceph.yaml"


@pytest.fixture(scope="session")
def narwhal() -> Cluster:
    (loaded,), problems = check_paths([SPEC])
    assert problems == []
    return loaded.cluster


@pytest.fixture
def told(narwhal: Cluster) -> list[dict[str, Any]]:
    """The facts of all its storage hosts, each with as many disks as the spec says."""
    rules = settings(narwhal)["disks"]

    def disk(host: str, kind: str, number: int) -> dict[str, Any]:
        by_id = f"{rules[kind]['by_id'].removesuffix('*')}_{host}-{number}"
        device = f"/dev/disk/by-id/{by_id}"
        return {"name": f"x{number}", "disks": kind, "device": device, "state": "empty", "fsid": None, "why": []}

    hosts = [host.name for _, host in narwhal.host_list()]
    return [
        {"host": host, "wrong": [], "disks": [disk(host, k, n) for k in rules for n in range(rules[k]["count"])]}
        for host in hosts
    ]
