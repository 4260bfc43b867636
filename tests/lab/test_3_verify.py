"""Every proof of `menagerie verify`, including the faults; those that take minutes run only in a soak."""

from __future__ import annotations

import pytest

from operations.verify.run import PROOFS
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


LONG = frozenset({"main-member-killed", "events-member-killed", "uplink-cut"})
ELSEWHERE = frozenset({"growth"})
"""Needs a running autoscaler: test_5_scheduling.py."""


@pytest.fixture(scope="module")
def verified(lab: Run, request: pytest.FixtureRequest) -> Run:
    """One run with all the proofs that this session tests."""
    parameters = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    return menagerie(
        "verify", "lab", "--json", "--only", ",".join(parameter.params["name"] for parameter in parameters if parameter)
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(proof.name, marks=[pytest.mark.soak] if proof.name in LONG else [])
        for proof in PROOFS
        if proof.name not in ELSEWHERE
    ],
)
def test_the_proof_succeeds(verified: Run, name: str) -> None:
    results = {proof["name"]: proof for proof in verified.json["proofs"]}
    assert results[name]["outcome"] == "proved", results[name]["seen"]


def test_the_exit_code_says_that_all_proofs_succeeded(verified: Run) -> None:
    assert (verified.code, verified.json["ok"]) == (0, True), verified.err
