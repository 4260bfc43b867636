"""What a pass decides, in words that a simulation and a cluster's hands both carry out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controllers.autoscaler.memory import Memory
from controllers.planner import Plan, Verdict
from operations.breaker import Decision as Brakes


class Act(StrEnum):
    """In the order in which they are carried out."""

    GROW = "grow"
    """Want `size` machines in the pool."""
    GIVE_BACK = "give back"
    """Take the mark and the cordon off a node that is needed after all."""
    CORDON = "cordon"
    """The first step of a removal: nothing more is placed there."""
    DRAIN = "drain"
    """Ask its pods to go; asked again in each pass until none is left."""
    REMOVE = "remove"
    """Give the machine back to its cloud."""
    FORGET = "forget"
    """Delete the Node of a machine that is gone."""


@dataclass(frozen=True)
class Decision:
    """why: one sentence. size: of the pool, for GROW. node: "" where there is none. machine: the cloud's id."""

    act: Act
    pool: str
    why: str
    size: int = 0
    node: str = ""
    machine: str = ""

    def __str__(self) -> str:
        what = f"{self.pool} to {self.size} machines" if self.act is Act.GROW else self.node or self.machine
        return f"{self.act} {what}: {self.why}"

    def to_json(self) -> dict[str, Any]:
        return {
            "act": str(self.act), "pool": self.pool, "why": self.why, "size": self.size, "node": self.node,
            "machine": self.machine,
        }  # fmt: skip


@dataclass(frozen=True)
class Pass:
    """One look, decided. memory: to be written down before anything is done.

    verdicts: of every pod that waits. kept: node -> why it stays. notices: what somebody should know. refused: why nothing at all
    was decided, "" where something could be.
    """

    decisions: tuple[Decision, ...]
    memory: Memory
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None
    brakes: Brakes | None = None
    notices: tuple[str, ...] = ()
    refused: str = ""
