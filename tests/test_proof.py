"""docs/reference/proof.md is up to date, and its rows name tests that exist."""

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


def test_the_page_is_up_to_date() -> None:
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        proof_page.PAGE.write_text(proof_page.rendered())
    assert proof_page.PAGE.read_text() == proof_page.rendered(), "run `make golden` and review the diff"


def test_a_row_with_an_unknown_test_is_refused_with_its_promise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = proof_page.SOURCE.read_text().replace("lab_down_leaves_nothing", "lab_down_leaves_all")
    (tmp_path / "proofs.yaml").write_text(text)
    monkeypatch.setattr(proof_page, "SOURCE", tmp_path / "proofs.yaml")
    with pytest.raises(proof_page.UnknownTestError, match="A deleted lab leaves nothing on the machine: .*leaves_all"):
        proof_page.proofs()


def test_every_row_has_a_proof_and_names_its_most_real_part() -> None:
    rows = [row for part in proof_page.proofs().values() for row in part]
    assert [row.promise for row in rows if not row.tests] == []
    levels = {row.promise: row.level() for row in rows}
    assert levels["A deleted lab leaves nothing on the machine"].startswith("real parts")
    assert levels["A control plane in AWS"] == "real Pulumi engine, simulated cloud"
    assert levels["A cluster of the former release is upgraded to this one without an outage"].endswith(
        "`make soak` alone"
    )


def test_every_promise_about_data_and_service_has_a_row() -> None:
    table = (ROOT / "docs" / "explanation" / "promises.md").read_text().split("\n\n")[3]
    promised = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    assert len(promised) > 10
    assert sorted(proof_page.proved_rows()) == sorted(promised)


def test_every_named_command_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in (command.split() for part in proof_page.proofs().values() for row in part for command in row.commands):
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "python":
            assert (ROOT / f"{words[2].replace('.', '/')}.py").exists(), words
        else:
            group = get_command(app)
            while isinstance(group, typer.core.TyperGroup) and words[1:]:
                assert words[1] in group.commands, words
                group, words = group.commands[words[1]], words[1:]


def test_tests_of_every_level_are_found() -> None:
    levels = {(test.level, test.soak) for test in functions()}
    assert {("lab", False), ("lab", True), ("programs", False), ("engine", False), ("pure", False)} <= levels
