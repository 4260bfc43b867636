"""`verify`: its verdict and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from operations.verify import run
from operations.verify.proof import Context, FailedProofError, Proof
from tests.cli.terminal import Menagerie
from tests.operations.conftest import FakeAccess, outputs

Proves = Callable[..., None]


def skipped(name: str, why: str) -> Proof:
    def ran(_: Context) -> str:
        raise AssertionError("it ran")

    return Proof(name, f"{name} holds", ran, lacks=lambda _: why)


def failing(_: Context) -> str:
    raise FailedProofError("2 of 3 nodes")


PROVED = Proof("names", "names resolve", lambda _: "seen")
FAILED = Proof("nodes", "nodes are Ready", failing)
KILLED, CUT = skipped("killed", "needs machines"), skipped("cut", "needs machines")
GROWTH = skipped("growth", "no pool can grow")


@pytest.fixture
def proves(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proves]:
    """proves(proofs): the proofs that exist, for a lab that is built."""
    monkeypatch.setattr("operations.stack.has_stack", lambda _: True)
    monkeypatch.setattr("operations.stack.access_to", lambda _: FakeAccess(outputs()))
    monkeypatch.setattr("cli.actions.verify.OTHERS", ())
    yield lambda *proofs: monkeypatch.setattr(run, "PROOFS", proofs)


def test_if_nothing_was_proved_it_fails_and_says_what_to_do(menagerie: Menagerie, proves: Proves) -> None:
    proves(KILLED, CUT, GROWTH)
    ran = menagerie("verify", "lab")
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "3 skipped (killed, cut: needs machines; growth: no pool can grow)"
    assert ran.err.splitlines()[-1] == (
        "error: nothing was proved, because every proof was skipped; "
        "give the cluster what they need, or choose others: ./menagerie verify lab --list"
    )


def test_a_named_proof_that_is_skipped_is_no_success(menagerie: Menagerie, proves: Proves) -> None:
    proves(PROVED, GROWTH)
    ran = menagerie("verify", "lab", "--only", "growth", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert ran.json["counts"] == {"proved": 0, "failed": 0, "skipped": 1}


def test_skipped_proofs_are_counted_with_their_reasons(menagerie: Menagerie, proves: Proves) -> None:
    proves(PROVED, KILLED, GROWTH)
    ran = menagerie("verify", "lab")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "1 proved, 2 skipped (killed: needs machines; growth: no pool can grow)"
    assert "error" not in ran.err
    ran = menagerie("verify", "lab", "--json")
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert ran.json["counts"] == {"proved": 1, "failed": 0, "skipped": 2}


def test_a_dry_run_says_which_proofs_would_run_and_runs_none(menagerie: Menagerie, proves: Proves) -> None:
    proves(FAILED, KILLED)
    ran = menagerie("verify", "lab", "--dry-run")
    assert ran.code == 0
    assert "killed  would be skipped: needs machines" in ran.out
    assert ran.out.splitlines()[-1] == "lab: 1 of 2 proofs would run; nothing was changed"
    rows = menagerie("verify", "lab", "--dry-run", "--json").json["proofs"]
    assert [(row["name"], row["skipped"]) for row in rows] == [("nodes", None), ("killed", "needs machines")]


@pytest.mark.parametrize("others", [(PROVED,), (KILLED,), ()])
def test_a_failure_exits_with_1_whatever_was_skipped(
    menagerie: Menagerie, proves: Proves, others: tuple[Proof, ...]
) -> None:
    proves(FAILED, *others)
    ran = menagerie("verify", "lab")
    assert ran.code == 1
    assert "1 failed" in ran.out.splitlines()[-1]
    assert "nothing was proved" not in ran.err
