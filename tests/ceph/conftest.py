"""The cluster of tests/specs/valid-ceph.yaml, and the reports of its hosts when everything is fine."""

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
def reports(narwhal: Cluster) -> list[dict[str, Any]]:
    """Return the reports of all its storage hosts, each with the disks that the spec expects."""
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
