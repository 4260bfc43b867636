"""Which machines of Google Cloud can be given more bandwidth than they have."""

from __future__ import annotations

from cluster import catalogue
from cluster.spec import Cloud

# "Configure per VM Tier_1 networking performance": series -> the fewest vCPUs with which they can have it.
_TIER_1 = {"n2": 32, "n2d": 48, "c2": 30, "c2d": 56, "c3": 44, "c3d": 60, "c4": 48, "c4d": 48, "c4a": 48, "z3": 88}


def can_have_tier_1(machine: str) -> bool:
    """Whether it is sold for a machine type; those with GPUs have the most from the start."""
    found = catalogue.of(Cloud.GCP).machine_types.get(machine)
    series, vcpus = machine.partition("-")[0], found.type.vcpus if found and found.type else 0
    return series in _TIER_1 and vcpus >= _TIER_1[series]
