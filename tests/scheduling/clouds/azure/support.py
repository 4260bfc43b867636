"""What tests of Azure ask, and what they spoil on its way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster.spec import Cluster
from controllers.autoscaler import clouds
from stacks.azure.tags import autoscaler_tags, tags
from tests.scheduling.clouds.door import Asked, Door
from tests.scheduling.clouds.fake_azure import MANAGEMENT, Microsoft, Set

ROOT = Path(__file__).resolve().parents[4]
POOL = ("koala_workers", "pool-cpu")


def marks(cluster: Cluster, pool: str = "cpu") -> dict[str, str]:
    return {**tags(cluster, f"pool-{pool}"), **autoscaler_tags(cluster, pool, cluster.spec.pools["cpu"])}


def groups(cluster: Cluster, nodes: Mapping[str, str] | None = None) -> Any:
    return clouds.groups_of(cluster, lambda: nodes or {})


def kept(microsoft: Microsoft) -> Set:
    return microsoft.sets[POOL]


def changes(door: Door) -> list[str]:
    asked = [each for each in door.log if each.host == MANAGEMENT]
    return [each.method for each in asked if each.method == "PATCH" or "/delete?" in each.path]


def asked_of(asked: Asked) -> str:
    """Of Azure's resource manager: the method."""
    return asked.method if asked.host == MANAGEMENT else ""
