"""Where pods go: settings of a spec about the cluster's one scheduler."""

from __future__ import annotations

from pydantic import Field

from cluster.model import Model

PACK = "pack"
"""schedulerName of pods that fill hosts one after the other; the others keep Kubernetes' default-scheduler, which spreads."""


class Pack(Model):
    """How the profile `pack` chooses among the hosts that a pod fits on: the fullest, by these weights."""

    gpu: int = Field(default=5, ge=1, le=100)
    """Weight of GPUs, for pods that ask for some. NVIDIA's alone."""
    cpu: int = Field(default=1, ge=1, le=100)
    """Weight of processors."""
    memory: int = Field(default=1, ge=1, le=100)
    """Weight of memory."""
    nodes_scored: int = Field(default=100, ge=1, le=100)
    """Percent of the nodes that are looked at for each pod: of fewer, the fullest may not be among them."""


class Scheduling(Model):
    """The scheduler: its profile for batch work, and gangs."""

    pack: Pack = Pack()
    """How the profile `pack` chooses."""
    gangs: bool = False
    """Whether pods may ask to start all together or not at all, by Kubernetes' PodGroup. Its API is alpha in 1.36."""
