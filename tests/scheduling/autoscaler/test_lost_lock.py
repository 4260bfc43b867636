"""A loop that loses its lock does nothing more, at whatever point of a pass that happens."""

from __future__ import annotations

import pytest

from clients.lease import LostTheLockError
from cluster.autoscaler import Autoscaler
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.run import Loop
from controllers.autoscaler.world import World
from tests.scheduling.autoscaler.support import LIMITS, node, pods, world

SETTINGS = Autoscaler()


class Hands:
    """Records what was done."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def carry_out(self, decision: Decision, world_: World) -> str:
        self.did.append(str(decision.act))
        return ""

    def recall(self) -> Memory:
        return Memory()

    def remember(self, memory: Memory) -> None:
        self.did.append("remember")

    def pause(self, paused: bool) -> None:
        self.did.append("pause")


def loop(hands: Hands, passes: int) -> Loop:
    """Return a loop that loses its lock after so many checks."""
    answers = iter([True] * passes)

    def check() -> None:
        if not next(answers, False):
            raise LostTheLockError("the Lease was lost")

    world_ = world([node("a")], pods("train", 4, cpus=6))
    return Loop(lambda _: world_, hands, SETTINGS, LIMITS, check=check)


def test_a_lock_lost_before_a_pass_acts_changes_nothing() -> None:
    hands = Hands()
    with pytest.raises(LostTheLockError):
        loop(hands, 0).once()
    assert hands.did == []


def test_a_lock_lost_between_storing_and_acting_orders_nothing() -> None:
    hands = Hands()
    with pytest.raises(LostTheLockError):
        loop(hands, 1).once()
    assert hands.did == ["remember"]


def test_with_the_lock_the_same_pass_orders_machines() -> None:
    hands = Hands()
    loop(hands, 100).once()
    assert "grow" in hands.did
