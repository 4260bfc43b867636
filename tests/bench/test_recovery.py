from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.spec import Cluster
from tests.bench import recovery
from tests.bench.recovery import AIM_S, LOSSES, Taken, summary
from tests.operations.conftest import FakeAccess, outputs


class Clock:
    """A clock that advances ten seconds for each action on the lab."""

    now = 100.0

    def takes(self, *_: object, **__: object) -> None:
        self.now += 10.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock_ = Clock()
    monkeypatch.setattr(recovery, "time", clock_)
    for owner, name in ((recovery.on_lab, "run"), (recovery.hosts, "kill"), (recovery, "do")):
        monkeypatch.setattr(owner, name, clock_.takes)
    monkeypatch.setattr(recovery, "wait_until", clock_.takes)
    monkeypatch.setattr(recovery.Victims, "follower", lambda *_: "etcd-main-1")
    return clock_


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_recovery_is_timed_from_the_loss_and_from_the_verb(
    lab: Cluster, clock: Clock, lose: Callable[..., Taken]
) -> None:
    access: Any = FakeAccess(outputs())
    taken = lose(lab, access)
    assert taken.from_verb == 20.0
    assert taken.from_loss >= 30.0


def test_the_aim_applies_to_the_time_from_the_loss() -> None:
    loss, verb = summary({"API server lost, to all well": [Taken(61.0, 50.0)]})
    assert (loss.name, loss.values, loss.aim, loss.met) == (
        "API server lost, to all well, from the loss", (61.0,), AIM_S, False,
    )  # fmt: skip
    assert (verb.name, verb.values, verb.aim) == (
        "API server lost, to all well, from the start of the verb", (50.0,), None,
    )  # fmt: skip
