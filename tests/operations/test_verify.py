"""How proofs are run: each has a result, whatever breaks it, and pods are started when a proof needs them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from clients.etcd_client import EtcdError
from cluster.errors import FailedError, RefusedError, TimedOutError
from cluster.spec import Cluster
from operations.verify import run
from operations.verify.proof import Context, Machines, Proof, ProofResult, demand, lacks_machines
from operations.verify.workload import Workload
from sandbox.lab.errors import LabError
from tests.operations.conftest import FakeAccess, outputs

Prove = Callable[..., list[ProofResult]]


class Pods:
    """Substitute for `workload`: counts how often it was started and ended, or raises."""

    def __init__(self) -> None:
        self.started, self.ended = 0, 0
        self.error: Exception | None = None

    @contextmanager
    def workload(self, *_: object) -> Iterator[Workload]:
        self.started += 1
        if self.error:
            raise self.error
        yield object.__new__(Workload)
        self.ended += 1


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Pods:
    fake = Pods()
    monkeypatch.setattr(run, "workload", fake.workload)
    return fake


@pytest.fixture
def prove(lab: Cluster, pods: Pods) -> Prove:
    def proved(*proofs: Callable[[Context], str], machines: Machines | None = None) -> list[ProofResult]:
        named = tuple(Proof(str(number), "", proof) for number, proof in enumerate(proofs))
        access = FakeAccess(outputs())
        return list(run.verify(lab, access, named, machines, lambda _: None, lambda _: None))  # type: ignore[arg-type]

    return proved


def fine(_: Context) -> str:
    return "seen"


def asks_for_pods(context: Context) -> str:
    return type(context.workload).__name__


def fails_with(error: BaseException) -> Callable[[Context], str]:
    def proof(_: Context) -> str:
        raise error

    return proof


@pytest.mark.parametrize(
    "error",
    [
        EtcdError("no member answers"),
        LabError("etcd-main-1 does not run"),
        FailedError("up ended with 1", code="repair"),
        TimedOutError("gave up"),
        subprocess.TimeoutExpired("ping", 60),
        KeyError("worker-1"),
        StopIteration(),
        ConnectionResetError("Handshake status"),
    ],
)
def test_whatever_breaks_a_proof_is_a_failed_result_with_its_kind_and_the_next_runs(
    prove: Prove, error: Exception
) -> None:
    broken, after = prove(fails_with(error), fine)
    assert (broken.outcome, broken.observation) == ("failed", f"{type(error).__name__}: {error}")
    assert (after.outcome, after.observation) == ("proved", "seen")


def test_a_claim_that_does_not_hold_is_failed_with_what_was_seen(prove: Prove) -> None:
    def claim(_: Context) -> str:
        demand(False, "2 of 3 nodes")
        return ""

    (result,) = prove(claim)
    assert (result.outcome, result.observation) == ("failed", "2 of 3 nodes")


def test_an_interrupt_ends_the_run(prove: Prove) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove(fails_with(KeyboardInterrupt()), fine)


def test_pods_are_started_once_when_the_first_proof_asks_and_end_with_the_run(prove: Prove, pods: Pods) -> None:
    prove(fine)
    assert (pods.started, pods.ended) == (0, 0)
    assert [result.observation for result in prove(fine, asks_for_pods, asks_for_pods)] == [
        "seen",
        "Workload",
        "Workload",
    ]
    assert (pods.started, pods.ended) == (1, 1)


def test_pods_that_can_not_be_started_fail_only_the_proofs_that_ask_for_them(prove: Prove, pods: Pods) -> None:
    pods.error = TimedOutError("gave up")
    results = prove(asks_for_pods, fine)
    assert [result.outcome for result in results] == ["failed", "proved"]


def test_a_proof_that_needs_machines_is_skipped_where_there_are_none(lab: Cluster, pods: Pods) -> None:
    proof = Proof("kill", "", fails_with(AssertionError("it ran")), lacks=lacks_machines)
    access = FakeAccess(outputs())
    (result,) = run.verify(lab, access, (proof,), None, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    assert result.outcome == "skipped"


def test_an_unknown_proof_is_named_with_the_nearest() -> None:
    with pytest.raises(RefusedError, match=r"no proof dirct; did you mean direct\?"):
        run.chosen(("dirct",))
