"""Words that are out of documentation, code and messages: docs/reference/glossary.md has the ones to use."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
PLACES = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("docs", "examples", "roles", "tests"),
)
"""Pages, and folders of them."""
GENERATED = {
    f"docs/reference/{name}.md"
    for name in ("alerts", "audit", "cli", "errors", "flows", "metrics", "outputs", "policies", "proof", "spec")
}
"""Their words are those of the code."""
OUT = {
    r"anew": "again, new, from scratch",
    r"likewise": "also",
    r"thereby|hence": "so, or a new sentence",
    r"whoever": "who, a person who",
    r"br(?:ing|ings|ought|inging) about": "cause, make",
    r"as it stands": "now, unchanged",
    r"as \w+ as ever": "still",
    r"by (?:itself|themselves)": "automatically, alone",
    r"(?:am|is|are|was|were|be|been|being) told(?! apart)": "gets, is given, is configured with, reports",
    r"such as (?:is|are)": "such as",
    r"makes? new": "creates, replaces",
    r"beside": "next to, as well as",
    r"(?:keep|kept|be|is|are|hold|held) in step": "synchronised, reconciled",
    r"of theirs": "their",
    r"lies": "is",
    r"stands? (?:in(?! for)|on|at|behind|under|between)": "is",
    r"ends? with (?:exit code )?\d": "exits with",
    r"ails|ailing|unwell": "unhealthy",
    r"main etcd cluster": "etcd main",
    r"Only then (?:is|are|does|do|will)": "the subject first",
    r"(?:nothing|none) (?:was|is) touched": "nothing was changed",
    r"cut short": "interrupted",
    r"circuit breakers?": "brake",
    r"compute nodes?": "worker",
    r"control nodes?": "API server",
    r"etcd nodes?": "member",
    r"nobody (?:else )?works on": "no operation is running on",
    r"no price is known": "has no known price",
    r"(?<!taken\W)out of service by": "out of service (verb: reason)",
    r"kept aside": "set aside",
}
"""Pattern -> what to write."""
IN_ANOTHER_SENSE = {
    "administrator": "of an account or of a company",
    "box": "of a drawing",
    "configuration file": "of another program",
    "data centre": "the lab is one on one machine",
    "deployment": "Kubernetes' object",
    "deviation": "of numbers",
    "difference": "between two texts",
    "environment": "variables of a process",
    "facts": "what is true; Ansible's facts",
    "gateway": "the cloud's end of a tunnel",
    "group": "of an API, of instances, of Unix, of control",
    "location": "of a zone or a label",
    "master": "Kubernetes' group system:masters",
    "node group": "a cloud's",
    "preemptible": "in names of Google Cloud",
    "record": "of data, and as a verb",
    "reservation": "a cloud's",
    "server": "a program that answers",
    "subcommand": "of another program",
    "turn": "one after another",
    "user": "a Unix user, or Kubernetes'",
    "version": "of a program",
    "well": "as well",
}
"""Words that the glossary's last column has, and that pages use in another sense -> that sense."""

KEPT = (
    "menagerie_secret.py",
    "menagerie_machine.py",
    "stacks/pki_resources.py",
    "tests/test_words.py",
)
"""The last two are in states of stacks, and a list of the words."""
NOT_MESSAGES = ("tests/", "components/", "stacks/lab/")
"""Their strings are data of tests, and what hosts get."""
STORED = ("cut short", "install anew")
"""Values in records of operations and of repairs."""


def _whole(pattern: str) -> str:
    """Return the expression of a pattern between the ends of words, however its words are wrapped."""
    return rf"\b(?:{pattern})\b".replace(" ", r"\s+")


_ANY = re.compile("|".join(map(_whole, OUT)), re.IGNORECASE)


def modules() -> list[str]:
    """Return the Python files whose words are checked, and that have a word that is out anywhere, also in code."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    checked = [name for name in listed if not name.endswith(KEPT)]
    return [name for name in checked if _ANY.search((ROOT / name).read_text())]


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every comment and docstring, without code in backticks."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, re.sub(r"`+[^`]*`+", "", node.value.value)


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every string that has words, without docstrings and without code in backticks."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, re.sub(r"`[^`]*`", "", node.value) if " " in node.value else ""


def found_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line within the text, the word and what to write instead)."""
    for pattern, instead in OUT.items() if _ANY.search(text) else ():
        for match in re.finditer(_whole(pattern), text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()), f"{' '.join(match[0].split())!r}: write {instead}"


def pages() -> list[Path]:
    paths = [
        page
        for place in PLACES
        for page in ([ROOT / place] if place.endswith(".md") else sorted((ROOT / place).rglob("*.md")))
    ]
    return [page for page in paths if str(page.relative_to(ROOT)) not in GENERATED]


def unreleased(changes: str) -> str:
    """Return the change log without its released sections, which stay as they were published: a tag has the same text."""
    return re.split(r"^## \d", changes, maxsplit=1, flags=re.MULTILINE)[0]


def prose(text: str) -> str:
    """Without code and without where links lead; lines stay where they are."""
    text = re.sub(r"^( *)```.*?^\1```", lambda match: "\n" * match[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", lambda match: "\n" * match[0].count("\n"), text))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_word_that_is_out(page: Path) -> None:
    text = unreleased(page.read_text()) if page.name == "CHANGELOG.md" else page.read_text()
    assert [f"{page.name}:{line + 1}: {words}" for line, words in found_in(prose(text))] == []


def test_no_comment_or_text_of_the_makefile_has_a_word_that_is_out() -> None:
    texts = enumerate((ROOT / "Makefile").read_text().splitlines(), start=1)
    hashes = [(number, line.partition("#")[2]) for number, line in texts]
    assert [f"Makefile:{number}: {words}" for number, text in hashes for _, words in found_in(text)] == []


def test_only_the_sections_of_the_change_log_that_are_not_released_are_checked() -> None:
    assert unreleased("# Changes\n\n## Unreleased\n\nnow\n\n## 0.2.0 (2026-11-26)\n\nanew\n").split() == [
        *("#", "Changes", "##", "Unreleased", "now"),
    ]


def test_no_docstring_or_comment_has_a_word_that_is_out() -> None:
    out = [
        f"{name}:{first + line}: {words}"
        for name in modules()
        for first, text in comments((ROOT / name).read_text())
        for line, words in found_in(text)
    ]
    assert out == []


def test_no_message_has_a_word_that_is_out() -> None:
    out = [
        f"{name}:{line}: {words}"
        for name in modules()
        if not name.startswith(NOT_MESSAGES)
        for line, text in messages((ROOT / name).read_text())
        if text not in STORED
        for _, words in found_in(text)
    ]
    assert out == []


def test_a_word_that_is_out_is_found_in_an_f_string_and_not_in_a_docstring() -> None:
    source = '"""anew"""\ntext = f"{host} joins anew"\nname = "anew"\n'
    assert [(line, words) for line, text in messages(source) for _, words in found_in(text)] == [
        (2, "'anew': write again, new, from scratch")
    ]


def test_code_and_links_are_no_prose() -> None:
    assert prose("a `beside`\n\n```\nanew\n```\n[b](anew.md)") == "a \n\n\n\n\n[b]"


NAMED_BY_HOW = re.compile(r"\b_*(?:found|told|seen|wanted)\b", re.IGNORECASE)
"""Names that say how a value came, and not what it is."""
KEPT_NAMES = (
    "components/control_plane/host/bucket",
    "stacks/azure/menagerie_machine.py",
    "stacks/gcp/menagerie_machine.py",
)
"""Members of etcd keep their user data, whose program calls `bucket.told`."""


def names(tree: ast.Module) -> Iterator[str]:
    """Yield every name that a module gives to a value, a function or a class."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_names_say_what_a_value_is() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {name: (ROOT / name).read_text() for name in listed.stdout.split()}
    assert {
        file: said
        for file, text in texts.items()
        if NAMED_BY_HOW.search(text) and not file.startswith(KEPT_NAMES)
        if (said := {name for name in names(ast.parse(text)) if NAMED_BY_HOW.fullmatch(name)})
    } == {}


def glossary() -> Iterator[tuple[str, list[str]]]:
    """Yield (term, words that are not used for it) of every row of the glossary."""
    for line in GLOSSARY.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| term"):
            _, term, _, out, _ = re.split(r"(?<!\\)\|", line)
            yield term.strip(), re.findall(r"`([^`]+)`", out)


def test_every_word_that_the_glossary_rules_out_is_out_or_has_another_sense() -> None:
    ruled_out = {word: term for term, words in glossary() for word in words}
    assert len(ruled_out) > 20
    is_out = {word for word in ruled_out if [*found_in(word)]}
    assert {word: ruled_out[word] for word in ruled_out if word not in {*is_out, *IN_ANOTHER_SENSE}} == {}
    assert sorted(is_out & set(IN_ANOTHER_SENSE)) == []
    assert sorted(set(IN_ANOTHER_SENSE) - set(ruled_out)) == []


def test_a_term_that_replaces_a_word_that_is_out_says_so_in_the_glossary() -> None:
    rows = {name: words for term, words in glossary() for name in (term, *term.split(", "))}
    replaced = {instead: pattern for pattern, instead in OUT.items() if instead in rows}
    assert len(replaced) > 5
    assert {
        instead: pattern
        for instead, pattern in replaced.items()
        if not any(instead in message for word in rows[instead] for _, message in found_in(word))
    } == {}
