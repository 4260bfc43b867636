"""Commands in pages are ones that exist: programs, verbs, options, names, files, units and targets."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import Exit, TyperException

from cli import aliases
from cli.main import named
from cli.verbs import table as verbs
from cluster.key_rings import RINGS
from tests.cli import pages
from tests.cli.conftest import EXAMPLES, LAB
from tests.cli.pages import ROOT, Command

OURS = ("menagerie", "make", "python", "setup.sh")
ELSEWHERE = {
    "a cloud": ("aws", "az", "gcloud"),
    "etcd": ("etcdctl-main", "etcdutl", "restic"),
    "Kubernetes": ("kubectl",),
    "Linux": (
        *("chronyc", "ethtool", "export", "find", "grep", "journalctl", "jq", "nstat", "nvidia-smi", "openssl", "ping"),
        *("df", "du", "tail"),
        *("printf", "sed", "sort", "ssh", "ssh-keygen", "swanctl", "systemctl", "umask", "vtysh", "xargs"),
    ),
    "Packer": ("packer",),
    "Prometheus": ("promtool",),
    "Pulumi": ("pulumi",),
    "uv": ("uv",),
}
"""Whose programs -> their names. What they accept is not for us to know, except for files and units of ours."""
ON_HOSTS = "menagerie-"
"""Starts the names of our programs on hosts."""
BROUGHT = ("--cert", "--key", "--facts", "--image-manifest")
"""Options with a file that the operator brings."""
EVERYWHERE = {"--debug", "--help", "--version"}
PAGES = [page for page in pages.pages() if any(True for _ in (*pages.commands(page), *pages.spans(page)))]
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=pages.named)


@EVERY_PAGE
def test_a_block_without_a_language_has_only_commands(page: Path) -> None:
    known = {*OURS, *(name for names in ELSEWHERE.values() for name in names)}
    strange = [
        command.place
        for command in pages.commands(page)
        if command.program not in known and not command.program.startswith(ON_HOSTS)
    ]
    assert strange == []


@EVERY_PAGE
def test_a_page_has_only_verbs_arguments_and_options_that_the_command_accepts(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    clusters = {path.name for path in EXAMPLES.iterdir()} | {LAB.name} | pages.initialised(page)
    wrong = [
        f"{command.place}: {why}"
        for command in pages.of_menagerie(page)
        for why in refusals(pages.filled_in(command.words[1:]), clusters)
    ]
    assert wrong == []


@pytest.mark.parametrize("job", sorted((ROOT / "docs" / "ci").glob("*.yml")), ids=lambda path: path.name)
def test_a_ready_made_job_has_only_verbs_and_options_that_the_command_accepts(job: Path) -> None:
    lines = [line.strip().removeprefix("- ").removeprefix("run: ") for line in job.read_text().splitlines()]
    commands = [words for line in lines if line.startswith("./menagerie ") for words in pages.simple(line)]
    assert commands != []
    assert [why for words in commands for why in refusals(pages.filled_in(words[1:]), {"jaguar"})] == []


def refusals(words: Sequence[str], clusters: set[str]) -> Iterator[str]:
    """Yield why the command would refuse a line: first the parser, then names that verbs look up."""
    line, former = aliases.current(words)
    if former:
        yield former
    verb = verbs.chosen(line)
    if verb is None:
        yield from () if line[0] in EVERYWHERE else ("no such verb",)
        return
    for option, file in pairwise(line):
        if option in BROUGHT:
            Path(file).touch()
    command = named(verb.name)
    try:
        values = command.make_context(verb.name, line[len(verb.name.split()) :]).params
    except Exit:  # --help
        return
    except TyperException as error:
        yield error.format_message()
        return
    takes_cluster = [param.name for param in command.params if param.metavar == "CLUSTER" and verb.name != "show"]
    yield from unknown(values, takes_cluster, clusters)


def unknown(values: dict[str, Any], takes_cluster: list[str], clusters: set[str]) -> Iterator[str]:
    """Yield the values that name nothing. show: its CLUSTER may be a schema."""
    given = [name for param in takes_cluster for name in listed(values[param]) if not name.endswith("/cluster.yaml")]
    yield from (f"no cluster {name}" for name in given if name not in clusters and not Path(name).exists())
    yield from (f"no role {tag}" for tag in listed(values.get("tags")) if tag not in roles())
    yield from (f"no key ring {ring}" for ring in listed(values.get("ring")) if ring not in RINGS)


def listed(values: str | Sequence[str] | None) -> list[str]:
    texts = [values] if isinstance(values, str) else values or []
    return [word for text in texts for word in text.split(",")]


@cache
def roles() -> frozenset[str]:
    """Return the tags of the playbooks."""
    books = "".join((ROOT / name).read_text() for name in ("site.yml", "gateways.yml"))
    return frozenset(re.findall(r"tags: \[(\w+)\]", books))


@EVERY_PAGE
def test_code_within_sentences_names_verbs_and_options_that_exist(page: Path) -> None:
    wrong = [f"{command.place}: {why}" for command in pages.spans(page) for why in misnomers(command.words[1:])]
    assert wrong == []


def misnomers(words: Sequence[str]) -> Iterator[str]:
    """Yield a verb and options that do not exist. Arguments may be missing, and VERB stands for any."""
    verb = verbs.chosen(words)
    if verb:
        params = named(verb.name).params
        options = EVERYWHERE.union(*((*param.opts, *param.secondary_opts) for param in params))
        yield from (f"no option {word}" for word in words if word[0] == "-" and word.partition("=")[0] not in options)
    elif words[0] not in verbs.NOUNS and words[0] not in EVERYWHERE and not words[0].isupper():
        yield "no such verb"


@EVERY_PAGE
def test_a_page_names_targets_modules_units_programs_and_files_that_exist(page: Path) -> None:
    wrong = [
        f"{command.place}: no {what}"
        for command in pages.commands(page)
        if command.program != "menagerie"
        for what in missing(command)
    ]
    assert wrong == []


def missing(command: Command) -> Iterator[str]:
    """Yield what a command names and is not there. A target of make with a slash is another project's."""
    match command.words:
        case ("make", target, *variables) if "/" not in target:
            names = [variable.partition("=")[0] for variable in variables]
            yield from () if re.search(rf"^{target}:", makefile(), re.MULTILINE) else (f"target {target}",)
            yield from (f"variable {name}" for name in names if f"$({name})" not in makefile())
        case (".venv/bin/python", "-m", module, *_) if find_spec(module) is None:
            yield f"module {module}"
        case ("journalctl", "-u", unit, *_) | ("systemctl", "start" | "stop" | "restart" | "status", unit):
            name = re.sub(r"(@.*|\.timer)$", "", unit)
            yield from () if name in on_hosts() else (f"unit {name}",)
        case (name, *_) if name.startswith(ON_HOSTS) and name not in on_hosts():
            yield f"program {name}"
        case ("jq", *arguments) if jq := shutil.which("jq"):  # with nothing to read, it only compiles the filter
            command_line = [jq, *arguments]
            ran = subprocess.run(command_line, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            yield from (f"filter: {ran.stderr}",) if ran.returncode else ()
    files = re.findall(r"(?<![\w./-])(?:docs|examples|stacks|tests|tools)/[\w./-]+", " ".join(command.words))
    yield from (f"file {file}" for file in files if not (ROOT / file).exists())


@cache
def makefile() -> str:
    return (ROOT / "Makefile").read_text()


@cache
def on_hosts() -> frozenset[str]:
    """Return the names of units and of our programs on hosts, as the product's files and rendered ones have them."""
    pattern = r"[a-z][a-z0-9-]+@?\.(service|timer)|/usr/local/sbin/[a-z-]+"
    search = ["git", "grep", "-ohE", pattern, "--", "roles", "components", "etcd", "tests/golden"]
    names = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return frozenset(re.sub(r"^/usr/local/sbin/|@?\.(service|timer)$", "", name) for name in names)


@pytest.mark.parametrize(
    ("line", "simple"),
    [
        ("./menagerie up lab", [("./menagerie", "up", "lab")]),
        ("A=1 x > FILE | y <in && z", [("x",), ("y",), ("z",)]),
        ('kubectl --kubeconfig "$(./menagerie kubeconfig lab)" get', [
            ("./menagerie", "kubeconfig", "lab"), ("kubectl", "--kubeconfig", "output", "get")
        ]),
        ("aws sso --profile <name>", [("aws", "sso", "--profile", "name")]),
        ("x 'a | b' --limit 'gpu-00*'", [("x", "a | b", "--limit", "gpu-00*")]),
    ],
)  # fmt: skip
def test_a_line_is_split_as_a_shell_splits_it(line: str, simple: list[tuple[str, ...]]) -> None:
    assert list(pages.simple(line)) == simple


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("frob lab", "no such verb"),
        ("up lbb", "no cluster lbb"),
        ("up lab --yess", "No such option"),
        ("up", "Missing argument"),
        ("configure lab --tags base,frob", "no role frob"),
        ("configure lab --parallel many", "many"),
        ("keys rotate lab frob", "no key ring frob"),
        ("preview lab", "deprecated: "),
    ],
)
def test_a_line_that_the_command_would_refuse_is_found(line: str, why: str) -> None:
    (refusal,) = refusals(line.split(), {"lab"})
    assert why in refusal
