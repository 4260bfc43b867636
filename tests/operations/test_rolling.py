"""Which host starts when, and what ends a roll."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster import preflight
from operations.drain import Pause
from operations.rolling import Roll, RollOutcome, RollState, WhyNot, room


def node(name: str, *, ready: bool = True, cordoned: bool = False, tainted: bool = False) -> client.V1Node:
    condition = client.V1NodeCondition(type="Ready", status=str(ready))
    taints = [client.V1Taint(key=preflight.KEY, effect="NoSchedule")] if tainted else None
    return client.V1Node(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1NodeSpec(unschedulable=cordoned or None, taints=taints),
        status=client.V1NodeStatus(conditions=[condition]),
    )


@dataclass
class Work:
    """Records which hosts are in progress together. fails: hosts that fail."""

    fails: frozenset[str] = frozenset()
    seconds: float = 0.05
    now: set[str] = field(default_factory=set)
    most: int = 0
    begun: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, host: str, pause: Pause) -> str:
        with self.lock:
            self.begun.append(host)
            self.now.add(host)
            self.most = max(self.most, len(self.now))
        try:
            pause(self.seconds)
        finally:
            with self.lock:
                self.now.discard(host)
        if host in self.fails:
            raise RuntimeError(f"{host} is broken")
        return f"{host} is well"


def states(outcomes: tuple[RollOutcome, ...]) -> dict[str, str]:
    return {each.host: each.state.value for each in outcomes}


def free() -> WhyNot:
    return lambda host, under_way: ""


def test_hosts_run_one_after_another_in_their_order() -> None:
    work, outcomes = Work(), []
    rolled = Roll(["a", "b", "c"], work, free, tell=outcomes.append).run()
    assert (work.begun, work.most, rolled.succeeded, rolled.why_stopped) == (["a", "b", "c"], 1, True, "")
    assert [(each.host, each.text) for each in outcomes] == [("a", "a is well"), ("b", "b is well"), ("c", "c is well")]


def test_at_most_at_once_hosts_run_in_parallel() -> None:
    work = Work(seconds=0.2)
    assert Roll(list("abcdef"), work, free, at_once=3).run().succeeded
    assert work.most == 3


def test_after_the_first_failure_no_host_starts_and_running_ones_finish() -> None:
    work = Work(fails=frozenset("b"))
    rolled = Roll(list("abcd"), work, free, at_once=2).run()
    assert states(rolled.outcomes)["b"] == "failed"
    assert rolled.why_stopped == "b failed"
    assert "failed" not in {state for host, state in states(rolled.outcomes).items() if host != "b"}
    assert "d" not in work.begun
    assert states(rolled.outcomes)["d"] == "not begun"


def test_without_room_a_roll_waits_for_its_own_hosts_and_stops_if_none_is_in_progress() -> None:
    work = Work(seconds=0.2)
    rolled = Roll(list("abc"), work, lambda: lambda _, under_way: "full" if under_way else "", at_once=3).run()
    assert (rolled.succeeded, work.most) == (True, 1)
    rolled = Roll(list("abc"), Work(), lambda: lambda host, _: "" if host == "a" else "x and y are out").run()
    assert states(rolled.outcomes) == {"a": "done", "b": "not begun", "c": "not begun"}
    assert rolled.why_stopped == "x and y are out"


def test_an_interrupt_ends_running_hosts_when_they_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    work, began = Work(seconds=60), time.monotonic()
    roll = Roll(list("abc"), work, free, at_once=2)
    real = roll._collect
    asked: list[int] = []

    def collect() -> str:
        asked.append(1)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return real()

    monkeypatch.setattr(roll, "_collect", collect)
    rolled = roll.run()
    assert states(rolled.outcomes) == {"a": "interrupted", "b": "interrupted", "c": "not begun"}
    assert (rolled.interrupted, rolled.why_stopped, time.monotonic() - began < 10) == (True, "interrupted", True)


@pytest.mark.parametrize(
    ("nodes", "most", "why"),
    [
        ([node("worker-1"), node("worker-2"), node("worker-3")], "10%", ""),
        ([node("worker-1"), node("worker-2", ready=False), node("worker-3")], "10%", "worker-2"),
        ([node("worker-1"), node("worker-2", cordoned=True), node("worker-3")], "1", "worker-2"),
        ([node("worker-1"), node("worker-2", tainted=True), node("worker-3")], "10%", "worker-2"),
        ([node("worker-1"), node("worker-2", ready=False), node("worker-3")], "67%", ""),
        ([node("worker-1"), node("worker-2"), node("region-1", ready=False)], "10%", ""),
        ([node("worker-1", ready=False), node("worker-2", ready=False)], "10%", ""),
    ],
    ids=["all well", "not ready", "cordoned", "tainted", "room for two", "of another pool", "it is out itself"],
)
def test_a_host_starts_only_if_its_pool_can_spare_it(
    build: Callable[..., object], nodes: list[client.V1Node], most: str, why: str
) -> None:
    cluster = build({"pools": {"workers": {"max_unavailable": most}}})
    reason = room(cluster, lambda: nodes)()("worker-1", ())  # type: ignore[arg-type]
    assert (why in reason, bool(reason)) == (True, bool(why))
    if reason:
        assert "of pool workers are out of service already (worker-2); max_unavailable is 1" in reason


def test_hosts_in_progress_count_before_their_nodes_show_it(build: Callable[..., object]) -> None:
    cluster = build()
    reason = room(cluster, lambda: [node(f"worker-{n}") for n in (1, 2, 3)])()("worker-1", ("worker-3",))  # type: ignore[arg-type]
    assert reason.startswith("1 of 3 nodes of pool workers are out of service already (worker-3)")


def test_nodes_are_read_once_for_all_waiting_hosts(build: Callable[..., object]) -> None:
    asked: list[int] = []

    def nodes() -> list[client.V1Node]:
        asked.append(1)
        return [node("worker-1", ready=False), node("worker-2"), node("worker-3")]

    rolled = Roll(["worker-2", "worker-3"], Work(), room(build(), nodes)).run()  # type: ignore[arg-type]
    assert rolled.why_stopped.startswith("1 of 3 nodes of pool workers are out of service already (worker-1)")
    assert (set(states(rolled.outcomes).values()), len(asked)) == ({"not begun"}, 1)


def test_no_host_starts_if_the_api_does_not_respond(build: Callable[..., object]) -> None:
    def nodes() -> list[client.V1Node]:
        raise ApiException(503, "unavailable")

    rolled = Roll(["worker-2"], Work(), room(build(), nodes)).run()  # type: ignore[arg-type]
    assert rolled.why_stopped == "the API server does not respond (ApiException)"


def test_states_are_words_for_reports() -> None:
    assert [state.value for state in RollState] == ["done", "failed", "interrupted", "not begun"]
