"""The decisions of a pass, which both the simulation and `hands` carry out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controllers.autoscaler.memory import Memory
from controllers.planner import Plan, Verdict
from operations.breaker import BrakeDecision as Brakes


class Act(StrEnum):
    """What to do, in the order of execution."""

    GROW = "grow"
    """Raise the pool to `size` machines."""
    GIVE_BACK = "give back"
    """Remove the mark and the cordon from a node that is needed after all."""
    CORDON = "cordon"
    """The first step of a removal: no more pods are placed on the node."""
    DRAIN = "drain"
    """Evict its pods; repeated in each pass until none is left."""
    REMOVE = "remove"
    """Give the machine back to its cloud."""
    FORGET = "forget"
    """Delete the Node of a machine that is gone."""


@dataclass(frozen=True)
class Decision:
    """One decision. why: one sentence. size: of the pool, for GROW. node: "" if there is none. machine: the cloud's id."""

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
    """The decisions after one look. memory: must be stored before anything is done.

    verdicts: of every pod that waits. kept: node -> why it stays. notices: for operators. refused: why nothing at all was decided,
    "" otherwise.
    """

    decisions: tuple[Decision, ...]
    memory: Memory
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None
    brakes: Brakes | None = None
    notices: tuple[str, ...] = ()
    refused: str = ""
