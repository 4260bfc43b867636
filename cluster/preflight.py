"""How a host that joins is kept from work until it is known to be whole, by names that several packages share.

A host joins with `TAINT`. Role preflight writes the condition `CONDITION` into the host's Node, with its kubelet's
identity; NodeRestriction keeps that identity from taints, so `components.control_plane.host.preflight` lifts the taint, on the API
servers. Programs on hosts have copies of these names; a test compares them.
"""

from __future__ import annotations

from cluster.pools import Pool, Taint, TaintEffect

CONDITION = "PreflightPassed"
AS_EXPECTED = "as expected"
"""How the condition's message begins where a host has nothing to say."""
KEY = "menagerie.dev/preflight"
TAINT = Taint(key=KEY, effect=TaintEffect.NO_SCHEDULE)
USER = "menagerie:preflight"
"""Whom the API servers' companion is known as."""


def checked(pool: Pool) -> bool:
    """Whether the pool's hosts join with `TAINT`. Workers in the region don't: docs/how-to/preflight.md says why."""
    return bool(pool.site) and pool.preflight


def taints(pool: Pool) -> tuple[Taint, ...]:
    """All that the pool's nodes join with."""
    return (*pool.taints, *((TAINT,) if checked(pool) else ()))
