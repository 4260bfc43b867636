"""Texts from the code as Markdown that the site and code hosts render the same."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
_SPECIAL = {"<": "&lt;", "*": r"\*", "[": r"\[", "]": r"\]", "|": r"\|"}


def prose(text: str) -> str:
    """Return a text in one line: backticked parts stay unchanged, other markup is escaped, pages of docs/ become links."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    line = "".join(code(part[1:-1]) if index % 2 else _plain(part) for index, part in enumerate(parts))
    return re.sub(r"^([#+>-]|\d+\.)(?=\s)", r"\\\1", line)


def _plain(text: str) -> str:
    escaped = re.sub(r"[<*\[\]|]", lambda match: _SPECIAL[match[0]], text.replace(" -> ", " → "))
    return _PAGE.sub(lambda match: f"[{match[1].rpartition('/')[2]}.md](../{match[1]}.md)", escaped)


def code(text: str) -> str:
    """Return a code span; in HTML if it contains `|`, which would end a table cell."""
    if "|" not in text:
        return f"`{text}`"
    return "<code>" + re.sub(r"[|*_`\\\[\]]", lambda match: f"&#{ord(match[0])};", html.escape(text)) + "</code>"


def anchored(anchor: str, text: str) -> str:
    """Return a text with an anchor."""
    return f'<a id="{anchor}"></a>{text}'


def slug(heading: str) -> str:
    """Return the anchor of a heading, as code hosts and the site derive it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |").replace("|  |", "| |") for line in lines)
