"""Machine types of Google Cloud that can have Tier_1 networking."""

from __future__ import annotations

from cluster import catalogue
from cluster.spec import Cloud

# "Configure per VM Tier_1 networking performance": series -> the fewest vCPUs that it needs.
_TIER_1 = {"n2": 32, "n2d": 48, "c2": 30, "c2d": 56, "c3": 44, "c3d": 60, "c4": 48, "c4d": 48, "c4a": 48, "z3": 88}


def can_have_tier_1(machine: str) -> bool:
    """Return whether Tier_1 is sold for a machine type. Those with GPUs have the most bandwidth without it."""
    known = catalogue.of(Cloud.GCP).machine_types.get(machine)
    series, vcpus = machine.partition("-")[0], known.type.vcpus if known and known.type else 0
    return series in _TIER_1 and vcpus >= _TIER_1[series]
