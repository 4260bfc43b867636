"""The autoscaler's settings in a spec."""

from __future__ import annotations

from cluster.autoscaler import Autoscaler
from cluster.errors import RefusedError
from cluster.spec import Cluster


def settings_of(cluster: Cluster) -> Autoscaler:
    """Return the spec's autoscaler settings. Errors: raises RefusedError if it has none."""
    if cluster.spec.autoscaler is None:
        raise RefusedError(
            f"the spec of {cluster.name} has no autoscaler; add `autoscaler: {{}}` (docs/how-to/autoscaler.md)",
            code="no-autoscaler",
        )
    return cluster.spec.autoscaler
