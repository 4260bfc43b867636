"""Every proof of `menagerie verify`, the faults too."""

from __future__ import annotations

import json
import subprocess

import pytest

from operations.verify.run import PROOFS
from tests.lab.support import MENAGERIE, ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def results(lab: Run) -> dict[str, dict[str, str]]:
    done = subprocess.run(
        [MENAGERIE, "verify", "lab", "--json"], capture_output=True, text=True, check=False, cwd=ROOT, timeout=900
    )
    return {proof["name"]: proof for proof in json.loads(done.stdout)["proofs"]}


@pytest.mark.parametrize("name", [proof.name for proof in PROOFS])
def test_it_is_proved(results: dict[str, dict[str, str]], name: str) -> None:
    assert results[name]["outcome"] == "proved", results[name]["seen"]
