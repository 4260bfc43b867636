"""What pages show runs as they show it, where no cluster, account or root is needed.

A page's lines run in their order, in a project that has the lab and the larger examples. `NEEDS` says which verbs are only
parsed (tests/cli/test_page_commands.py), and why.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.verbs import table as verbs
from tests.cli import pages
from tests.cli.conftest import EXAMPLES, LAB
from tests.cli.pages import ROOT, Command
from tests.cli.terminal import Menagerie, Ran

RUNS = {
    "autoscaler simulate": (),
    "check": (),
    "explain": (),
    "init": (),
    "list": (),
    "machines render": (),
    "roce plan": (),
    "roce test": ("--dry-run",),
    "show": (
        *(
            "alerts",
            "dashboards",
            "flows",
            "monitoring",
            "policies",
            "prices",
            "receivers",
            "schema",
            "topology",
            "vpn",
        ),
    ),
    "verify": ("--list",),
}
"""Verb -> words of which a line must have one to be run. Without words, every line is run."""
NEEDS = {
    "a running cluster": """
        audit, autoscaler plan, autoscaler run, bill, capacity, controllers apply, controllers remove, destroy, etcd backup,
        etcd defragment, etcd forget, etcd move-leader, etcd recover-space, etcd replace, etcd restore, etcd roll,
        expander run, keys rotate, kubeconfig, reboot, repair, roce test, secret, show, state move, status, tenancy sync, unlock,
        upgrade, verify, web
    """,
    "machines at a site, or what they report": """
        ceph facts, ceph render, configure, machines install, vpn configure, vpn request
    """,
    "an account, and the network": "doctor",
    "the engine, for minutes": "up, validate",
    "every pinned program": "controllers image",
    "download sites, a key or a bundle": "bundle, mirror push, mirror serve",
}
"""What is needed -> verbs whose lines are only parsed, unless `RUNS` has the line."""
EXITS = {("roce plan", "--facts"): 2}
"""(verb, word of a line) -> the exit code that its page announces: the switch that it shows has a wrong port."""
FILES = {
    "monday.jsonl": ("docs/how-to/simulate.md", "json", "{"),
    "switches.yaml": ("docs/how-to/roce.md", "yaml", "switches:"),
}
"""File that lines read -> the page, language and first word of the block that shows it."""
ADDS = {
    "docs/how-to/autoscaler.md": ("horus", "docs/how-to/autoscaler.md", "autoscaler:\n"),
    "docs/how-to/roce.md": ("jaguar", "docs/how-to/roce.md", "sites:\n"),
    "docs/how-to/simulate.md": ("horus", "docs/how-to/autoscaler.md", "autoscaler: {}"),
}
"""Page whose lines are about what YAML adds to an example -> the example, and the page and start of that block."""
FEW_HOSTS = 4
"""Of jaguar's 2500, for speed."""
PAGES = [page for page in pages.pages() if page != pages.HELP and pages.of_menagerie(page)]


def test_every_verb_runs_or_needs_something() -> None:
    needing = {" ".join(name.split()) for table in NEEDS.values() for name in table.split(",")}
    assert needing | set(RUNS) == {verb.name for verb in verbs.every()}
    assert needing & set(RUNS) == {verb for verb, chosen in RUNS.items() if chosen}


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder and project of every module, with the examples and the files that pages show. It has no cluster."""
    folder = tmp_path / "project"
    (folder / "inventories").mkdir(parents=True)
    (folder / "examples").symlink_to(EXAMPLES)
    for name, place in FILES.items():
        (folder / name).write_text(pages.block(*place).text)
    for module in working_on_a_project():
        monkeypatch.setattr(import_module(module), "ROOT", folder)
    monkeypatch.chdir(folder)
    return folder


@cache
def working_on_a_project() -> tuple[str, ...]:
    """Return the modules that import the project's folder."""
    paths = [
        path for package in ("cli", "clients", "controllers", "operations") for path in (ROOT / package).rglob("*.py")
    ]
    pattern = re.compile(r"^from cluster\.project import .*\bROOT\b", re.MULTILINE)
    return tuple(
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if pattern.search(path.read_text())
    )


@pytest.mark.parametrize("page", PAGES, ids=pages.named)
def test_lines_that_need_no_cluster_do_what_the_page_says(page: Path, menagerie: Menagerie, project: Path) -> None:
    build_fleet(project / "inventories", page)
    wrong = []
    for command in pages.of_menagerie(page):
        if runs(command.words[1:]):
            ran = menagerie(*pages.filled_in(command.words[1:]))
            wrong += [f"{command.place}: {why}" for why in breaches(command, ran)]
    assert wrong == []


def runs(words: Sequence[str]) -> bool:
    verb = verbs.chosen(words)
    if verb is None or "--help" in words:
        return True
    return verb.name in RUNS and (not RUNS[verb.name] or bool(set(RUNS[verb.name]) & set(words)))


def breaches(command: Command, ran: Ran) -> Iterator[str]:
    """Yield what a page says of a line and is not so: its exit code, and files that it writes."""
    verb = verbs.chosen(command.words[1:])
    codes = [code for (name, word), code in EXITS.items() if verb and name == verb.name and word in command.words]
    if ran.code not in (codes or [0]):
        yield f"exit code {ran.code}: {ran.err}"
    outputs = [file for option, file in pairwise(command.words) if option in ("-o", "--output")]
    for file in (*outputs, *re.findall(r"\bwrites (\S+/)", command.comment)):
        if not Path(file).exists():
            yield f"wrote no {file}"


def build_fleet(folder: Path, page: Path) -> None:
    """Add the lab and the larger examples, except for clusters that the page creates."""
    changed, *block = ADDS.get(pages.named(page), ("", "", ""))
    added = yaml.safe_load(pages.block(block[0], "yaml", block[1]).text) if changed else {}
    for cluster in (LAB, *(EXAMPLES / name for name in ("horus", "ibis", "jaguar"))):
        if cluster.name in pages.initialised(page):
            continue
        if cluster.name in (changed, "jaguar"):
            copy(cluster, folder / cluster.name, added if cluster.name == changed else {})
        else:
            (folder / cluster.name).symlink_to(cluster)


def copy(cluster: Path, to: Path, added: Mapping[str, Any]) -> None:
    """Copy a cluster with an addition, and few hosts."""
    to.mkdir()
    spec = yaml.safe_load((cluster / "cluster.yaml").read_text())
    (to / "cluster.yaml").write_text(yaml.safe_dump(merged(spec, added)))
    if (hosts := cluster / "hosts.yaml").exists():
        with hosts.open() as lines:
            rows = islice((line for line in lines if line.startswith("  - ")), FEW_HOSTS)
            (to / "hosts.yaml").write_text("".join(("hosts:\n", *rows)))


def merged(spec: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: merged(spec[key], added[key]) for key in spec.keys() & added.keys() if isinstance(added[key], Mapping)}
    return {**spec, **added, **both}


@pytest.mark.parametrize(
    ("line", "ran", "why"),
    [
        ("./menagerie check lab", Ran(2, "", "no"), "exit code 2: no"),
        ("./menagerie roce plan jaguar --facts f.yaml", Ran(0, "", ""), "exit code 0: "),
        ("./menagerie show topology lab -o nowhere.html", Ran(0, "", ""), "wrote no nowhere.html"),
        ("./menagerie init koala --cloud aws", Ran(0, "", ""), "wrote no inventories/koala/"),
    ],
)
def test_a_line_that_does_something_else_is_found(
    line: str, ran: Ran, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = Command(ROOT / "README.md", 1, tuple(line.split()), "writes inventories/koala/" if "init" in line else "")
    assert list(breaches(command, ran)) == [why]


def test_the_pages_have_lines_that_run() -> None:
    run = {command.words[1] for page in PAGES for command in pages.of_menagerie(page) if runs(command.words[1:])}
    assert {"autoscaler", "check", "init", "machines", "roce", "show", "verify"} <= run


def test_conditions_for_a_cloud_that_pages_compute_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = pages.pages()
    lines = {
        words[2:]
        for page in start
        for words in (command.words for command in pages.commands(page))
        if is_condition(words)
    }
    assert {words[0] for words in lines} == {"stacks.azure.permissions", "stacks.gcp.permissions"}
    for module, *arguments in lines:
        monkeypatch.setattr("sys.argv", [module, *arguments])
        runpy.run_module(module, run_name="__main__")
        assert capsys.readouterr().out.strip()


def is_condition(words: Sequence[str]) -> bool:
    return words[:2] == (".venv/bin/python", "-m") and words[2].endswith(".permissions")
