"""Names for preflight, which several packages share: a joining host gets no work until its checks have passed.

A host joins with `TAINT`. Role preflight writes the condition `CONDITION` into the host's Node, with its kubelet's
identity. NodeRestriction doesn't let that identity change taints, so `components.control_plane.host.preflight` on the API
servers removes the taint. Programs on hosts have copies of these names; a test compares them.
"""

from __future__ import annotations

from cluster.pools import Pool, Taint, TaintEffect

CONDITION = "PreflightPassed"
AS_EXPECTED = "as expected"
"""Start of the condition's message if a host has nothing to report."""
KEY = "menagerie.dev/preflight"
TAINT = Taint(key=KEY, effect=TaintEffect.NO_SCHEDULE)
USER = "menagerie:preflight"
"""User name of the API servers' companion."""


def checked(pool: Pool) -> bool:
    """Return whether the pool's hosts join with `TAINT`. Workers in the region don't; docs/how-to/preflight.md says why."""
    return bool(pool.site) and pool.preflight


def taints(pool: Pool) -> tuple[Taint, ...]:
    """Return all taints with which the pool's nodes join."""
    return (*pool.taints, *((TAINT,) if checked(pool) else ()))
