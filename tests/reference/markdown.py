"""Texts of the code as Markdown that the site and code hosts show alike."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
_SPECIAL = {"<": "&lt;", "*": r"\*", "[": r"\[", "]": r"\]", "|": r"\|"}


def prose(text: str) -> str:
    """One line: what is between backticks stays as it is, nothing else is read as markup, pages of docs/ become links."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    line = "".join(code(part[1:-1]) if index % 2 else _plain(part) for index, part in enumerate(parts))
    return re.sub(r"^([#+>-]|\d+\.)(?=\s)", r"\\\1", line)


def _plain(text: str) -> str:
    escaped = re.sub(r"[<*\[\]|]", lambda found: _SPECIAL[found[0]], text.replace(" -> ", " → "))
    return _PAGE.sub(lambda found: f"[{found[1].rpartition('/')[2]}.md](../{found[1]}.md)", escaped)


def code(text: str) -> str:
    """A code span; in HTML where a table would end a cell in the midst of it."""
    if "|" not in text:
        return f"`{text}`"
    return "<code>" + re.sub(r"[|*_`\\\[\]]", lambda found: f"&#{ord(found[0])};", html.escape(text)) + "</code>"


def anchored(anchor: str, text: str) -> str:
    """A text that links may lead to."""
    return f'<a id="{anchor}"></a>{text}'


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |").replace("|  |", "| |") for line in lines)
