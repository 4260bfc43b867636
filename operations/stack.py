"""A cluster's Pulumi stack, opened with what this checkout provides: the CLI, the state's place."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from cluster import versions
from cluster.spec import Cluster
from operations.access import STATE, Access
from stacks.automation import ClusterStack
from stacks.program import CLOUDS, declare
from tools.build import ensure


class UnsupportedCloudError(Exception):
    """The cluster's cloud has no stack."""


def refuse_cloud(cluster: Cluster) -> None:
    """UnsupportedCloudError for a cluster that no provider can build yet."""
    cloud = cluster.spec.control_plane.cloud
    if cloud not in CLOUDS:
        built = ", ".join(sorted(CLOUDS))
        raise UnsupportedCloudError(
            f"{cluster.name} is for control_plane.cloud: {cloud.value}, which no provider builds yet; so far only "
            f"`{built}` is built. `check` and `schema` work for every cloud"
        )


def open_stack(cluster: Cluster, report: Callable[[str], None]) -> ClusterStack:
    """The stack of `cluster`; makes its record if there is none. `report` hears of a CLI being built."""
    return ClusterStack(cluster, lambda: declare(cluster), pulumi_cli(report), STATE / cluster.name)


def has_stack(cluster: Cluster) -> bool:
    """Whether this checkout has ever built the cluster with its own state."""
    return (STATE / cluster.name).is_dir()


def access_to(cluster: Cluster, report: Callable[[str], None] = lambda _: None) -> Access:
    """How to reach a built cluster. `operations.access.NotBuiltError` when it was never built."""
    return Access.from_stack(cluster.name, open_stack(cluster, report).outputs())


def pulumi_cli(report: Callable[[str], None]) -> Path:
    """The pulumi on PATH if it is at least as new as the SDK's pin, else the one from ``tools/``."""
    return installed_pulumi() or ensure(["pulumi"], lambda event: report(str(event)))["pulumi"]


def installed_pulumi() -> Path | None:
    """The pulumi on PATH if it is recent enough."""
    found = shutil.which("pulumi")
    return Path(found) if found and _version(found) >= _numbers(versions.PULUMI) else None


def _version(program: str) -> tuple[int, ...]:
    told = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    return _numbers(told.strip().removeprefix("v"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".") if part.isdigit())
