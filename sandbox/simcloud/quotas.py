"""The quota of running vCPUs. Each cloud counts its own machines, and refuses in its own words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.simcloud.rules import Call
from sandbox.simcloud.world import Record


@dataclass(frozen=True)
class Exceeded:
    """vCPUs: what the account may run in the region, what runs without this resource, and what it needs."""

    quota: int
    running: int
    more: int


def exceeded(call: Call, more: int, vcpus_of: Callable[[Record], int]) -> Exceeded | None:
    """Return the quota that a resource exceeds, None if it fits. vcpus_of: what an existing resource runs."""
    quota = call.offers.vcpus(call.cloud.name, call.region)
    if quota is None or more == 0:
        return None
    others = (other for other in call.world if other.region == call.region and other.id != call.id)
    running = sum(map(vcpus_of, others))
    return Exceeded(quota, running, more) if running + more > quota else None
