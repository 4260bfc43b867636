"""What a host of a fabric is told: the variables of role roce, computed once. No I/O."""

from __future__ import annotations

from typing import Any

from cluster.roce import Roce
from cluster.spec import ClusterSpec


def settings(roce: Roce, pool: str) -> dict[str, Any]:
    """``/etc/menagerie/roce.json`` of the pool's hosts: what the program `menagerie-roce` reads."""
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
    """The role's variables for the pool's hosts; none where they are on no fabric, and the role is left out."""
    site = spec.sites.get(spec.pools[pool].site or "")
    if site is None or site.roce is None or pool not in site.roce.rails:
        return {}
    return {"roce_settings": settings(site.roce, pool)}
