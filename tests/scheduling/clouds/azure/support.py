"""Helpers for tests of Azure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster.spec import Cluster
from controllers.autoscaler import clouds
from stacks.azure.tags import autoscaler_tags, tags
from tests.scheduling.clouds.door import Door, Request
from tests.scheduling.clouds.fake_azure import MANAGEMENT, Microsoft, Set

ROOT = Path(__file__).resolve().parents[4]
POOL = ("koala_workers", "pool-cpu")


def marks(cluster: Cluster, pool: str = "cpu") -> dict[str, str]:
    return {**tags(cluster, f"pool-{pool}"), **autoscaler_tags(cluster, pool, cluster.spec.pools["cpu"])}


def groups(cluster: Cluster, nodes: Mapping[str, str] | None = None) -> Any:
    return clouds.groups_of(cluster, lambda: nodes or {})


def scale_set(microsoft: Microsoft) -> Set:
    return microsoft.sets[POOL]


def changes(door: Door) -> list[str]:
    requests = [each for each in door.log if each.host == MANAGEMENT]
    return [each.method for each in requests if each.method == "PATCH" or "/delete?" in each.path]


def method_of(request: Request) -> str:
    """Return the method of a request to Azure's Resource Manager, "" for other hosts."""
    return request.method if request.host == MANAGEMENT else ""
