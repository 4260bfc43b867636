"""Checks before the first request to a cloud."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.errors import RefusedError
from cluster.sources import missing_checksums
from cluster.spec import Cluster
from operations.plugins import how_to_pin, needed, pin_of
from stacks.credentials import missing


def refuse_unready(
    cluster: Cluster, environment: Mapping[str, str], *, declares: bool = True, plugin: bool = True
) -> None:
    """Raise RefusedError if anything is missing, with all of it and what works without it.

    declares: whether resources will be declared, or only deleted. plugin: whether Menagerie provides the engine's plugin.
    """
    if cluster.is_lab:
        return
    lacking = list(missing(cluster.spec.control_plane.cloud, environment))
    if declares:
        lacking += missing_checksums(cluster.spec)
    if plugin and (provider := needed(cluster, environment)) and not pin_of(cluster, provider):
        lacking.append(how_to_pin(provider))
    if lacking:
        listed = "\n  ".join(lacking)
        raise RefusedError(
            f"{cluster.name} isn't ready to build:\n  {listed}\n"
            f"  to check the spec without an account, run: ./menagerie validate {cluster.name}",
            code="not-ready",
        )
