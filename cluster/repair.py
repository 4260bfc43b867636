"""Settings of a spec for automatic repair: when a node is broken, how it is repaired, and what limits repairs.

Defaults follow what others run with, according to their pages (2026-11):

- GKE, "Auto-repair nodes", and AKS, "Node auto-repair": a node is repaired after about ten minutes without being Ready. AKS
  reboots it first, and reimages it if that doesn't help.
- Cluster API, "MachineHealthCheck": `maxUnhealthy` stops all remediation of a set of machines (40 % in its examples; the
  default of 100 % never does), percentages round down, `minHealthyPeriod` is an hour.
- OpenAI's kubernetes-ec2-autoscaler never removes more than half of the nodes in one decision.
- node-problem-detector, `config/`: KernelDeadlock, ReadonlyFilesystem and XfsShutdown are permanent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from cluster import preflight
from cluster.model import Model
from cluster.quantities import DurationMs, Share
from cluster.words import ConditionType

_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


class Action(StrEnum):
    """How to repair a broken machine. In the region every action except a ticket replaces the machine."""

    REBOOT = "reboot"
    """Reboot by the machine itself if it still answers, otherwise through its BMC."""
    POWER_CYCLE = "power-cycle"
    """Power off and on through its BMC; without a BMC, like reboot."""
    TICKET = "ticket"
    """Needs a person: the node is drained and stays out of service."""


class Condition(Model):
    """A condition that marks a node as broken."""

    type: ConditionType
    """Type of the condition as in `kubectl describe node`: Ready, or one of node-problem-detector's."""
    status: Literal["True", "False", "Unknown"]
    """Status of the condition, in quotes. Unknown: the node's kubelet has stopped reporting."""
    after: DurationMs = 10 * _MINUTE
    """How long the condition must last."""
    action: Action | None = Field(default=None, strict=False)
    """reboot, power-cycle or ticket. Default: reboot, or for PreflightPassed the action that the host's finding needs."""


CONDITIONS = (
    Condition(type="Ready", status="False"),
    Condition(type="Ready", status="Unknown"),
    Condition(type=preflight.CONDITION, status="False"),
    Condition(type="KernelDeadlock", status="True"),
    Condition(type="ReadonlyFilesystem", status="True"),
    Condition(type="XfsShutdown", status="True"),
)


class Repair(Model):
    """How `menagerie repair` repairs broken nodes, and its limits."""

    max_unhealthy: Share = "40%"
    """Nodes of a pool that may be unhealthy at the same time, as a number or a share, rounded down. Above it no node of the
    pool is repaired: so many failures probably have a common cause."""
    max_removed: Share = "50%"
    """Nodes of the cluster that may be taken out of service automatically within `window`."""
    window: DurationMs = _HOUR
    """Period over which `max_removed` counts."""
    conditions: tuple[Condition, ...] = Field(default=CONDITIONS, strict=False)
    """All conditions that mark a node as broken. Your own list replaces the default."""
    node_startup: DurationMs = 30 * _MINUTE
    """Longest time from power-on to a node that takes work. Younger nodes aren't judged, and a repair waits this long. Large
    machines check their memory and cards for many minutes."""
    drain_hard_limit: DurationMs = 7 * _DAY
    """Time after which pods on a broken node are deleted even if a disruption budget forbids it."""
    retries: int = Field(default=2, ge=0, le=10)
    """Further repairs of a host after one that didn't help or didn't last. After that it becomes a ticket."""
    min_healthy_period: DurationMs = _HOUR
    """How long a repaired host must be healthy before its repairs are forgotten."""
    reinstall: bool = False
    """Whether the last repair of a machine with a BMC is to reinstall it, which overwrites its system disk."""
