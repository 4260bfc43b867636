"""`init`: its output, its files, and that they pass `check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cluster.sources import without_checksum
from tests.cli.conftest import LAB
from tests.cli.terminal import Menagerie


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A checkout with only the lab."""
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories" / "lab").symlink_to(LAB)
    for module in ("cli.actions.init", "cli.actions.check", "cli.specs", "cli.verbs.validate"):
        monkeypatch.setattr(f"{module}.ROOT", tmp_path)
    return tmp_path / "inventories"


KINDS = [
    *(["--cloud", cloud] for cloud in ("aws", "azure", "gcp", "lab", "site")),
    *(["--cloud", cloud, "--gpu", "h100"] for cloud in ("aws", "azure", "gcp", "site")),
    *(["--cloud", "site", "--control-plane", plane] for plane in ("aws", "azure", "gcp", "lab")),
]


@pytest.mark.parametrize("words", KINDS, ids=" ".join)
def test_written_files_pass_check_with_no_warning_but_of_placeholders(
    menagerie: Menagerie, fleet: Path, words: list[str]
) -> None:
    assert menagerie("init", "koala", *words).code == 0
    checked = menagerie("check", "--json")
    assert checked.code == 0
    assert {problem["code"] for problem in checked.json["problems"]} <= {"CFG-022"}
    assert "2 checked, no errors: koala, lab" in menagerie("check").out


def test_it_prints_the_region_the_ranges_and_the_next_steps_in_order(menagerie: Menagerie, fleet: Path) -> None:
    ran = menagerie("init", "koala", "--cloud", "site", "--gpu", "h100")
    assert ran.code == 0
    first, second, _, _, *steps = ran.out.splitlines()
    assert first.startswith("koala: aws us-west-2 (the default; --region chooses another); pods 10.0.0.0/16, services ")
    assert second == "wrote inventories/koala/cluster.yaml, inventories/koala/hosts.yaml"
    numbered = [line.split(". ", 1)[1].split("  ")[0] for line in steps if line[2].isdigit()]
    assert numbered == [
        "replace each PLACEHOLDER:",
        "./menagerie check koala",
        "./menagerie bundle koala --fetch --new-key -o koala.bundle",
        "./menagerie validate koala",
        "docs/start/aws.md",
        "./menagerie secret koala vpn-onprem-edge-1",
        "./menagerie secret koala vpn-onprem-edge-2",
        "docs/how-to/hybrid.md",
        "./menagerie up koala",
    ]
    assert "sites.onprem.vpn.routers: the public addresses of your edge routers" in ran.out
    output = menagerie("check", "koala").out
    listed = [line.strip() for line in steps if line.startswith("     ") and "/" in line]
    assert listed == [line.strip() for line in output.splitlines() if line.startswith("    ")]


def test_check_warns_of_each_placeholder_until_it_is_replaced(menagerie: Menagerie, fleet: Path) -> None:
    menagerie("init", "koala", "--cloud", "site", "--gpu", "h100")
    texts = {path: path.read_text() for path in sorted((fleet / "koala").glob("*.yaml"))}
    ran = menagerie("check", "koala", "--json")
    assert ran.code == 0
    left = [problem for problem in ran.json["problems"] if problem["code"] == "CFG-022"]
    assert len(left) == sum(text.count("PLACEHOLDER:") for text in texts.values()) >= 3
    for problem in left:
        line = (fleet.parent / problem["file"]).read_text().splitlines()[problem["line"] - 1]
        assert line[problem["column"] - 1 :].startswith("PLACEHOLDER:")
    (fleet / "koala" / "hosts.yaml").unlink()
    assert menagerie("check", "koala").code == 2
    for path, text in texts.items():
        path.write_text(text.replace("PLACEHOLDER:", "ours:"))
    assert "CFG-022" not in {problem["code"] for problem in menagerie("check", "koala", "--json").json["problems"]}


def test_a_lab_needs_nothing_else(menagerie: Menagerie, fleet: Path) -> None:
    ran = menagerie("init", "koala", "--cloud", "lab")
    assert ran.code == 0
    assert "PLACEHOLDER" not in ran.out + (fleet / "koala" / "cluster.yaml").read_text()
    assert ran.out.splitlines()[-1].split() == ["3.", "./menagerie", "up", "koala", "ask,", "then", "build"]


def test_every_page_that_it_names_exists(menagerie: Menagerie, fleet: Path) -> None:
    for words in KINDS:
        named = menagerie("init", "koala", *words, "--dry-run", "--json").json["next"]
        pages = [word for line in named for word in line.split() if word.endswith(".md")]
        assert pages
        assert [page for page in pages if not (LAB.parents[1] / page).is_file()] == []


def test_a_dry_run_shows_the_files_and_writes_none(menagerie: Menagerie, fleet: Path) -> None:
    ran = menagerie("init", "koala", "--cloud", "gcp", "--region", "us-central1", "--dry-run")
    assert ran.code == 0
    assert "--- inventories/koala/cluster.yaml\n# yaml-language-server: $schema=" in ran.out
    assert "koala: gcp us-central1; pods" in ran.out
    assert "would write inventories/koala/cluster.yaml" in ran.out
    assert [path.name for path in fleet.iterdir()] == ["lab"]


def test_json_is_a_document_with_the_files(menagerie: Menagerie, fleet: Path) -> None:
    dry = menagerie("init", "koala", "--cloud", "azure", "--json", "--dry-run")
    wet = menagerie("init", "koala", "--cloud", "azure", "--json")
    assert (dry.json["written"], wet.json["written"], dry.err, wet.err) == (False, True, "", "")
    assert dry.json | {"written": True} == wet.json
    (path,) = wet.json["files"]
    assert path == "inventories/koala/cluster.yaml"
    assert (fleet.parent / path).read_text() == wet.json["files"][path]
    spec = yaml.safe_load(wet.json["files"][path])
    assert wet.json["ranges"] == {name: spec["network"][name] for name in ("nodes", "pods", "services")}
    from cluster.load import load_cluster

    lacking = without_checksum(load_cluster(fleet.parent / path).spec)
    assert wet.json["checksums_lacking"] == [download.source for download in lacking]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["lab", "--cloud", "lab"], "inventories/lab exists and was not changed"),
        (["Koala", "--cloud", "aws"], "error[CFG-005] name Koala isn't valid"),
        (["koala", "--cloud", "aws", "--region", "mars"], "aws has no region mars"),
        (["koala", "--cloud", "aws", "--gpu", "h1000"], "write one of t4, a10g, l4"),
        (["koala", "--cloud", "lab", "--gpu", "h100"], "a lab has no GPUs"),
        (["koala", "--cloud", "aws", "--control-plane", "gcp"], "--control-plane needs --cloud site"),
        (["koala"], "Missing option '--cloud'"),
    ],
)
def test_a_refusal_writes_nothing(menagerie: Menagerie, fleet: Path, words: list[str], why: str) -> None:
    ran = menagerie("init", *words, "--json")
    assert (ran.code, ran.json["error"]["exit_code"]) == (2, 2)
    assert why in ran.err
    assert json.dumps(ran.json).count("koala/cluster.yaml") == 0
    assert [path.name for path in fleet.iterdir()] == ["lab"]
