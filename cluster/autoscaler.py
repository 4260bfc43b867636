"""When workers in the region are added for pods that wait and taken away when they are idle, and what stops that: settings of
a spec.

Defaults are those that others run with, as their pages say them (2026-11):

- kubernetes/autoscaler, cluster-autoscaler's FAQ: looks every 10 s, removes a node that was not needed for 10 minutes, waits 15
  minutes for a machine (`--max-node-provision-time`), backs a group off for 5 minutes at first and 30 at most.
- OpenAI's kubernetes-ec2-autoscaler: an instance is kept for a while after it was last used, and no decision removes more than
  half of the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from cluster.model import Model
from cluster.pools import Pool
from cluster.quantities import DurationMs, Name, Share
from cluster.words import LabelKey, LabelValue

LEASE = "menagerie-autoscaler"
"""Whoever holds it acts on the cluster."""
_SECOND = 1_000
_MINUTE = 60 * _SECOND


class Idle(Model):
    """How long a host must have been idle until it is taken away, by kind."""

    cpu: DurationMs = 10 * _MINUTE
    """Hosts without GPUs."""
    gpu: DurationMs = 20 * _MINUTE
    """Hosts with GPUs: they take longer to come back, and a researcher's next job comes within minutes."""


class Autoscaler(Model):
    """What `menagerie autoscaler` does about pools in the region, and what stops it. What brakes all automatic removal is in
    `repair`: max_unhealthy, max_removed, window."""

    pools: tuple[Name, ...] | None = Field(default=None, strict=False)
    """Pools that grow and shrink. Default: every pool in the region whose max is above its min."""
    interval: DurationMs = 15 * _SECOND
    """From one look to the next."""
    settle: DurationMs = 10 * _SECOND
    """How long a pod must have waited until a host is added for it: pods of a job come one after another."""
    idle: Idle = Idle()
    """How long hosts are kept idle, by kind."""
    idle_below: int = Field(default=0, ge=0, le=80)
    """Percent of a host that pods which may move can use, and it still counts as idle. 0: only an empty host is."""
    removed_step: Share = "10%"
    """Nodes of the cluster that are on their way out at one time, a number or a share; one at least."""
    added_step: Share = "25%"
    """Hosts that a pool grows by in one look, a number or a share of its max; one at least, and a gang's always together."""
    boot_timeout: DurationMs = 15 * _MINUTE
    """From ordering a machine to a Ready node; then its pool is left alone for a while, and its pods are planned elsewhere."""
    spot_timeout: DurationMs = 10 * _MINUTE
    """The same for pools of spot machines, so that pods which may go elsewhere do."""
    backoff: DurationMs = 5 * _MINUTE
    """How long a pool is not grown after its cloud said why it can't be, or its machines did not come. Doubles each time."""
    backoff_most: DurationMs = 60 * _MINUTE
    """What it doubles up to."""
    solver: DurationMs = 2 * _SECOND
    """Processor time for making a plan cheaper than the heuristic's, in each look."""
    tries: int = Field(default=3, ge=1, le=100)
    """Hosts that are ordered for a pod one after another without its ever starting; then somebody has to look."""
    preference_worth: float = Field(default=1.0, ge=0, le=1000)
    """US dollars an hour that a pod's preference is worth where it doesn't say."""
    prices: dict[Name, float] = Field(default={})
    """US dollars that a machine of a pool costs an hour. Default: list prices, where a source has them."""
    interruptions: dict[Name, float] = Field(default={})
    """How often an hour a machine of a spot pool is taken away, on average. Default: 0."""
    data: dict[Name, dict[LabelKey, LabelValue]] = Field(default={})
    """Names of data -> labels of the hosts that are near to it, for pods that say near which data they like to be."""

    def grown(self, pools: Mapping[str, Pool]) -> tuple[str, ...]:
        """Names of those of a spec's pools that grow and shrink."""
        if self.pools is not None:
            return self.pools
        return tuple(name for name, pool in pools.items() if pool.site is None and pool.max > pool.min)
