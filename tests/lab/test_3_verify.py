"""Every proof of `menagerie verify`, the faults too."""

from __future__ import annotations

import pytest

from operations.verify.run import PROOFS
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def verified(lab: Run) -> Run:
    return menagerie("verify", "lab", "--json")


@pytest.mark.parametrize("name", [proof.name for proof in PROOFS])
def test_it_is_proved(verified: Run, name: str) -> None:
    results = {proof["name"]: proof for proof in verified.json["proofs"]}
    assert results[name]["outcome"] == "proved", results[name]["seen"]


def test_the_exit_code_says_that_all_is_proved(verified: Run) -> None:
    assert (verified.code, verified.json["ok"]) == (0, True), verified.err
