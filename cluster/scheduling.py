"""Settings of a spec for the cluster's scheduler."""

from __future__ import annotations

from pydantic import Field

from cluster.model import Model

PACK = "pack"
"""schedulerName of pods that fill hosts one after another. All others use Kubernetes' default-scheduler, which spreads pods."""


class Pack(Model):
    """How the profile `pack` chooses among hosts that a pod fits on: the fullest, by these weights."""

    gpu: int = Field(default=5, ge=1, le=100)
    """Weight of GPUs, for pods that request some. Only NVIDIA's."""
    cpu: int = Field(default=1, ge=1, le=100)
    """Weight of CPUs."""
    memory: int = Field(default=1, ge=1, le=100)
    """Weight of memory."""
    nodes_scored: int = Field(default=100, ge=1, le=100)
    """Percentage of nodes that are scored for each pod. Below 100 the fullest node may not be among them."""


class Scheduling(Model):
    """The scheduler: its profile for batch work, and gangs."""

    pack: Pack = Pack()
    """How the profile `pack` chooses hosts."""
    gangs: bool = False
    """Whether pods may start all together or not at all, with Kubernetes' PodGroup. Its API is alpha in 1.36."""
