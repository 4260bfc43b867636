"""Settings of a spec for adding workers in the region for pending pods, and removing idle ones; and their limits.

Defaults follow what others run with, according to their pages (2026-11):

- kubernetes/autoscaler, cluster-autoscaler's FAQ: checks every 10 s, removes a node that wasn't needed for 10 minutes, waits 15
  minutes for a machine (`--max-node-provision-time`), and backs off from a group for 5 minutes at first, 30 at most.
- OpenAI's kubernetes-ec2-autoscaler: keeps an instance for a while after its last use, and never removes more than half of
  the nodes in one decision.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from cluster.model import Model
from cluster.pools import Pool
from cluster.quantities import DurationMs, Name, Share
from cluster.words import LabelKey, LabelValue

LEASE = "menagerie-autoscaler"
"""Only the holder of this lease changes the cluster."""
_SECOND = 1_000
_MINUTE = 60 * _SECOND


class Idle(Model):
    """How long a host must be idle before it is removed, by kind."""

    cpu: DurationMs = 10 * _MINUTE
    """Hosts without GPUs."""
    gpu: DurationMs = 20 * _MINUTE
    """Hosts with GPUs. They take longer to come back, and a researcher's next job often follows within minutes."""


class Autoscaler(Model):
    """How `menagerie autoscaler` scales pools in the region, and its limits. Brakes on all automatic removal are in
    `repair`: max_unhealthy, max_removed, window."""

    pools: tuple[Name, ...] | None = Field(default=None, strict=False)
    """Pools that grow and shrink. Default: every pool in the region whose max is above its min."""
    interval: DurationMs = 15 * _SECOND
    """Time between two checks."""
    settle: DurationMs = 10 * _SECOND
    """How long a pod must wait before a host is added for it, as pods of a job appear one after another."""
    idle: Idle = Idle()
    """How long idle hosts are kept, by kind."""
    idle_below: int = Field(default=0, ge=0, le=80)
    """A host counts as idle if movable pods use at most this percentage of it. 0: only an empty host is idle."""
    removed_step: Share = "10%"
    """Nodes of the cluster that may be in removal at the same time, as a number or a share; at least one."""
    added_step: Share = "25%"
    """Hosts that a pool grows by in one check, as a number or a share of its max; at least one. A gang's hosts are
    always added together."""
    boot_timeout: DurationMs = 15 * _MINUTE
    """Longest time from ordering a machine to a Ready node. After that the pool pauses for a while, and the pods are
    planned elsewhere."""
    spot_timeout: DurationMs = 10 * _MINUTE
    """The same for pools of spot machines, so that pods that can run elsewhere do so sooner."""
    backoff: DurationMs = 5 * _MINUTE
    """How long a pool isn't grown after its cloud refused, or its machines didn't appear. Doubles each time."""
    backoff_most: DurationMs = 60 * _MINUTE
    """The longest backoff, up to which it doubles."""
    solver: DurationMs = 2 * _SECOND
    """CPU time in each check for finding a plan cheaper than the heuristic's."""
    tries: int = Field(default=3, ge=1, le=100)
    """Hosts ordered one after another for a pod that never starts. After that an operator has to look into it."""
    preference_worth: float = Field(default=1.0, ge=0, le=1000)
    """US dollars an hour that a pod's preference is worth by default."""
    prices: dict[Name, float] = Field(default={})
    """US dollars an hour that a machine of a pool costs. Default: list prices, where a source has them."""
    interruptions: dict[Name, float] = Field(default={})
    """Average number of times an hour that a machine of a spot pool is interrupted. Default: 0."""
    data: dict[Name, dict[LabelKey, LabelValue]] = Field(default={})
    """Name of a data set -> labels of the hosts close to it, for pods that prefer to run close to certain data."""

    def grown(self, pools: Mapping[str, Pool]) -> tuple[str, ...]:
        """Return the names of the spec's pools that grow and shrink."""
        if self.pools is not None:
            return self.pools
        return tuple(name for name, pool in pools.items() if pool.site is None and pool.max > pool.min)
