"""Words that are out of the documentation: docs/reference/glossary.md has the ones to use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs")
"""Pages, and folders of them."""
GENERATED = {
    f"docs/reference/{name}.md" for name in ("audit", "cli", "errors", "flows", "outputs", "policies", "proof", "spec")
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
    r"stands? (?:in|on|at|behind|under|between)": "is",
    r"ends? with (?:exit code )?\d": "exits with",
    r"ails|ailing|unwell": "unhealthy",
    r"main etcd cluster": "etcd main",
    r"Only then (?:is|are|does|do|will)": "the subject first",
}
"""Pattern -> what to write."""


def pages() -> list[Path]:
    found = [
        page
        for place in PLACES
        for page in ([ROOT / place] if place.endswith(".md") else sorted((ROOT / place).rglob("*.md")))
    ]
    return [page for page in found if str(page.relative_to(ROOT)) not in GENERATED]


def prose(text: str) -> str:
    """Without code and without where links lead; lines stay where they are."""
    text = re.sub(r"^( *)```.*?^\1```", lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", lambda found: "\n" * found[0].count("\n"), text))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_word_that_is_out(page: Path) -> None:
    text, found = prose(page.read_text()), []
    for pattern, instead in OUT.items():
        words = pattern.replace(" ", r"\s+")
        for match in re.finditer(rf"\b(?:{words})\b", text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{page.name}:{line}: {' '.join(match[0].split())!r}: write {instead}")
    assert found == []


def test_code_and_links_are_no_prose() -> None:
    assert prose("a `beside`\n\n```\nanew\n```\n[b](anew.md)") == "a \n\n\n\n\n[b]"
