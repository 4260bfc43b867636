"""Configuration of hosts on a fabric: the variables of role roce. No I/O."""

from __future__ import annotations

from typing import Any

from cluster.roce import Roce
from cluster.spec import ClusterSpec


def settings(roce: Roce, pool: str) -> dict[str, Any]:
    """Return ``/etc/menagerie/roce.json`` for the pool's hosts; the program `menagerie-roce` reads it."""
    return {
        "fabric": str(roce.fabric),
        "priority": roce.priority,
        "dscp": roce.dscp,
        "cnp_dscp": roce.cnp_dscp,
        "cnp_priority": roce.cnp_priority,
        "tos": roce.tos,
        "mtu": roce.mtu,
        "least_link_mtu": roce.least_link_mtu,
        "link_mtu": roce.link_mtu,
        "gbit_s": roce.gbit_s,
        "rails": {rail: device.model_dump(exclude_none=True) for rail, device in roce.rails[pool].items()},
    }


def of_pool(spec: ClusterSpec, pool: str) -> dict[str, Any]:
    """Return the role's variables for the pool's hosts; none if they are on no fabric, which skips the role."""
    site = spec.sites.get(spec.pools[pool].site or "")
    if site is None or site.roce is None or pool not in site.roce.rails:
        return {}
    return {"roce_settings": settings(site.roce, pool)}
