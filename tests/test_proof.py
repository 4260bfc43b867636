"""docs/reference/proof.md says what there is, and its rows name tests that exist."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from cli.main import app
from tests import proof_page
from tests.levels import functions

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_is_what_its_source_and_the_tests_make() -> None:
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        proof_page.PAGE.write_text(proof_page.rendered())
    assert proof_page.PAGE.read_text() == proof_page.rendered(), "run `make golden` and read the difference"


def test_a_row_that_names_a_test_that_does_not_exist_is_refused_with_its_promise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = proof_page.SOURCE.read_text().replace("lab_down_leaves_nothing", "lab_down_leaves_all")
    (tmp_path / "proofs.yaml").write_text(text)
    monkeypatch.setattr(proof_page, "SOURCE", tmp_path / "proofs.yaml")
    with pytest.raises(proof_page.UnknownTestError, match="Nothing of a lab is left on the machine: .*leaves_all"):
        proof_page.proofs()


def test_every_row_is_proved_by_something_and_the_most_real_part_is_named() -> None:
    rows = [each for part in proof_page.proofs().values() for each in part]
    assert [each.promise for each in rows if not each.tests] == []
    by = {each.promise: each.level() for each in rows}
    assert by["Nothing of a lab is left on the machine"].startswith("real parts")
    assert by["A control plane in AWS"] == "real Pulumi engine, simulated cloud"
    assert by["A cluster of the former release is carried over without a stop"].endswith("`make soak` alone")


def test_every_command_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in (command.split() for part in proof_page.proofs().values() for row in part for command in row.commands):
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "python":
            assert (ROOT / f"{words[2].replace('.', '/')}.py").exists(), words
        else:
            here = get_command(app)
            while isinstance(here, typer.core.TyperGroup) and words[1:]:
                assert words[1] in here.commands, words
                here, words = here.commands[words[1]], words[1:]


def test_tests_of_every_level_are_found() -> None:
    found = {(each.level, each.soak) for each in functions()}
    assert {("lab", False), ("lab", True), ("programs", False), ("engine", False), ("pure", False)} <= found
