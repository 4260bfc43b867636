"""Python programs as hosts are given them."""

from __future__ import annotations

import ast
import threading
from functools import cache

_parses = threading.Lock()


def parsed(program: str) -> ast.Module:
    """One at a time: where two threads parse at once, Python 3.11 fails (SystemError, its issue 106905)."""
    with _parses:
        return ast.parse(program)


@cache
def without_words(program: str) -> str:
    """A program without comments and docstrings: they are half of it, and a store's values are small."""
    tree = parsed(program)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _is_text(statement: ast.stmt) -> bool:
    found = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(found, ast.Constant) and isinstance(found.value, str)
