"""What somebody learns who has only the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import app
from cluster.codes import reference
from tests.cli.terminal import Menagerie

ROOT = Path(__file__).resolve().parents[2]
VERBS = sorted(command.callback.__name__ for command in app.registered_commands if command.callback)


def test_the_verbs_are_those_of_the_documentation() -> None:
    assert VERBS == [
        "audit",
        "capacity",
        "check",
        "configure",
        "destroy",
        "flows",
        "kubeconfig",
        "operations",
        "policies",
        "preview",
        "reboot",
        "repair",
        "schema",
        "secret",
        "status",
        "topology",
        "unlock",
        "up",
        "upgrade",
        "validate",
        "verify",
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_examples_of_it(menagerie: Menagerie, verb: str) -> None:
    page = menagerie(verb, "--help")
    assert page.code == 0
    _, examples = page.out.split("Examples")
    assert f"./menagerie {verb}" in examples


@pytest.mark.parametrize("verb", VERBS)
def test_no_example_is_wrapped_at_80_columns(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, examples = menagerie(verb, "--help").out.split("Examples")
    commands = ("./menagerie ", ".menagerie/bin/kubectl ")
    assert [line for line in examples.splitlines() if line.strip() and not line.strip().startswith(commands)] == []


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_without_a_verb_there_is_the_help_with_every_verb_and_the_exit_codes(
    menagerie: Menagerie, arguments: tuple[str, ...]
) -> None:
    page = menagerie(*arguments)
    assert page.code == 0
    assert [verb for verb in VERBS if verb not in page.out] == []
    assert "2 bad input" in page.out


def test_importing_the_command_imports_no_engine() -> None:
    heavy = ("pulumi", "kubernetes", "ansible_runner", "grpc", "cryptography")
    code = f"import sys, cli.main, cli.running; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [["check"], ["check", "lba"], ["up", "--help"]])
def test_a_check_and_a_help_page_import_no_engine_either(arguments: list[str]) -> None:
    code = (
        "import sys; from cli.running import run; "
        f"run({arguments}); print(sorted({{'pulumi', 'kubernetes', 'ansible_runner'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_the_reference_of_errors_is_current() -> None:
    path = ROOT / "docs" / "reference" / "errors.md"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(reference())
    assert path.read_text() == reference(), "run `make golden`"
