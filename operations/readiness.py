"""What must be there before a cloud is asked for anything."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.errors import RefusedError
from cluster.sources import told_checksums
from cluster.spec import Cluster
from operations.plugins import how_to_pin, needed, pin_of
from stacks.credentials import missing


def refuse_unready(
    cluster: Cluster, environment: Mapping[str, str], *, declares: bool = True, plugin: bool = True
) -> None:
    """RefusedError unless everything is there: all that is missing, and what works without.

    declares: whether resources will be declared, or only deleted. plugin: whether it is us who provide the engine's.
    """
    if cluster.is_lab:
        return
    lacking = list(missing(cluster.spec.control_plane.cloud, environment))
    if declares:
        lacking += told_checksums(cluster.spec)
    if plugin and (wanted := needed(cluster, environment)) and not pin_of(cluster, wanted):
        lacking.append(how_to_pin(wanted))
    if lacking:
        listed = "\n  ".join(lacking)
        raise RefusedError(
            f"{cluster.name} can't be reached yet:\n  {listed}\n"
            f"  without an account, see whether it would work: ./menagerie validate {cluster.name}",
            code="not-ready",
        )
