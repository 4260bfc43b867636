"""`list`, `explain`, `--version`, schemas, and completion."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from cli import exits, failure_codes
from cluster import versions
from cluster.codes import MEANING
from operations import stack
from tests.cli.terminal import Menagerie
from tests.cluster.test_errors import CODES

ROOT = Path(__file__).resolve().parents[2]


def test_the_list_shows_where_each_cluster_is_and_whether_it_is_built(menagerie: Menagerie) -> None:
    stacks = stack.STATE / "lab" / "pulumi" / ".pulumi" / "stacks" / "menagerie"
    stacks.mkdir(parents=True)
    (stacks / "lab.json").touch()
    rows = {row["name"]: row for row in menagerie("list", "--json").json["clusters"]}
    assert rows["lab"] == {
        "name": "lab", "cloud": "lab", "region": "local", "sites": ["onprem"], "built": True, "error": False
    }  # fmt: skip
    shown = {line.split()[0]: line.split() for line in menagerie("list").out.splitlines()}
    assert shown["lab"] == ["lab", "lab", "local", "onprem", "yes"]
    for name, row in rows.items():
        assert (shown[name][-1], name == "lab") == ("yes" if row["built"] else "no", row["built"])


def test_the_version_has_kubernetes_and_the_commit(menagerie: Menagerie) -> None:
    ran = menagerie("--version")
    assert ran.code == 0
    assert re.fullmatch(
        rf"menagerie \d+\.\d+\.\d+, Kubernetes {versions.KUBERNETES}(, commit [0-9a-f]+(-dirty)?)?\n", ran.out
    )


@pytest.mark.parametrize(("code", "text"), [("etc-001", MEANING["ETC-001"]), ("locked", "--wait waits for it")])
def test_a_code_is_explained_in_either_case(menagerie: Menagerie, code: str, text: str) -> None:
    ran = menagerie("explain", code)
    assert ran.code == 0
    assert text in ran.out
    assert menagerie("explain", code, "--json").json["codes"][0]["code"].lower() == code


def test_for_an_unknown_code_the_nearest_is_named(menagerie: Menagerie) -> None:
    ran = menagerie("explain", "lockd")
    assert ran.code == 2
    assert "there is no code lockd; did you mean locked?" in " ".join(ran.err.split())


def test_all_codes_are_listed(menagerie: Menagerie) -> None:
    codes = {row["code"] for row in menagerie("explain", "--json").json["codes"]}
    assert codes == {*MEANING, *failure_codes.MEANING}


def test_every_known_failure_has_a_meaning_and_its_exit_code() -> None:
    expected = {word: exit_code for exit_code, words in CODES.items() for word in words.split()}
    actual = {word: exit_code for word, (exit_code, _) in failure_codes.MEANING.items()}
    assert actual == {**expected, "usage": exits.BAD_INPUT, "interrupted": exits.INTERRUPTED}


@pytest.mark.parametrize("of", ["cluster", "hosts"])
def test_a_schema_describes_its_file(menagerie: Menagerie, of: str) -> None:
    document = menagerie("show", "schema", of).json
    assert document["$schema"].startswith("https://json-schema.org/")
    assert ("kubernetes" in document["properties"]) is (of == "cluster")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("menagerie ", {"up", "etcd", "status"}),
        ("menagerie etcd ", {"restore", "replace"}),
        ("menagerie up ", {"lab"}),
        ("menagerie status ", {"lab"}),
        ("menagerie upgrade --", {"--dry-run", "--parallel", "--wait"}),
    ],
)
def test_a_shell_completes_verbs_clusters_and_options(line: str, expected: set[str]) -> None:
    words = line.split(" ")
    environment = {"_MENAGERIE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        ["env", *(f"{name}={value}" for name, value in environment.items()), _python(), "-m", "cli"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert expected - set(done.stdout.split()) == set(), done


def test_the_script_for_a_shell_is_printed() -> None:
    done = subprocess.run(
        ["env", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1", _python(), "-m", "cli", "--show-completion", "bash"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "complete -o default -F _menagerie_completion menagerie" in done.stdout, done


def _python() -> str:
    import sys

    return sys.executable


def test_json_of_the_list_is_one_document(menagerie: Menagerie) -> None:
    json.loads(menagerie("list", "--json").out)
