"""When a node counts as broken, what is then done, and what stops it: settings of a spec.

Defaults are those that others run with, as their pages say them (2026-11):

- GKE, "Auto-repair nodes", and AKS, "Node auto-repair": a node is repaired when it was not Ready for about ten minutes; AKS
  reboots it first, and images it anew when that did not help.
- Cluster API, "MachineHealthCheck": `maxUnhealthy` brakes all remediation of a set of machines (40 % in its examples; the
  default of 100 % is no brake), percentages round down, `minHealthyPeriod` is an hour.
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
    """What helps a broken machine. In the region every one but a ticket means that the machine is replaced."""

    REBOOT = "reboot"
    """By itself where it still answers, else by its BMC."""
    POWER_CYCLE = "power-cycle"
    """Off and on by its BMC; without one, as reboot."""
    TICKET = "ticket"
    """Somebody's hands: it is drained, and stays out of service."""


class Condition(Model):
    """A condition of a node that makes it a broken one."""

    type: ConditionType
    """As `kubectl describe node` has it: Ready, or one of node-problem-detector's."""
    status: Literal["True", "False", "Unknown"]
    """In quotes. Unknown: the node's kubelet says nothing any more."""
    after: DurationMs = 10 * _MINUTE
    """How long it must have lasted."""
    action: Action | None = Field(default=None, strict=False)
    """reboot, power-cycle or ticket. Default: reboot; of PreflightPassed, what the host's own finding asks for."""


CONDITIONS = (
    Condition(type="Ready", status="False"),
    Condition(type="Ready", status="Unknown"),
    Condition(type=preflight.CONDITION, status="False"),
    Condition(type="KernelDeadlock", status="True"),
    Condition(type="ReadonlyFilesystem", status="True"),
    Condition(type="XfsShutdown", status="True"),
)


class Repair(Model):
    """What `menagerie repair` does about broken nodes, and what stops it."""

    max_unhealthy: Share = "40%"
    """Nodes of a pool that may be unwell at once, a number or a share, rounded down. Above it none of the pool is repaired:
    so many at once have one cause."""
    max_removed: Share = "50%"
    """Nodes of the cluster that may be taken out of service within `window`, by whatever removes nodes by itself."""
    window: DurationMs = _HOUR
    """Time over which `max_removed` counts."""
    conditions: tuple[Condition, ...] = Field(default=CONDITIONS, strict=False)
    """All that make a node a broken one; a list of your own replaces this one."""
    node_startup: DurationMs = 30 * _MINUTE
    """From power-on to a node that takes work. A younger node is not judged, and a repaired one is waited for so long: large
    machines check their memory and cards for many minutes."""
    drain_hard_limit: DurationMs = 7 * _DAY
    """Time after which pods that a budget still keeps on a broken node are deleted."""
    retries: int = Field(default=2, ge=0, le=10)
    """Further repairs of a host after one that did not help or did not last; then it is a ticket."""
    min_healthy_period: DurationMs = _HOUR
    """How long a repaired host must be well until its repairs are forgotten."""
    reinstall: bool = False
    """Whether the last repair of a machine with a BMC is to install it anew, which overwrites its system disk."""
