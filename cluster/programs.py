"""Python programs in the form that hosts get."""

from __future__ import annotations

import ast
import io
import threading
import tokenize
from collections.abc import Iterator
from functools import cache

_parses = threading.Lock()


def parsed(program: str) -> ast.Module:
    """Parse a program, one at a time: Python 3.11 fails if two threads parse (SystemError, its issue 106905)."""
    with _parses:
        return ast.parse(program)


@cache
def without_words(program: str) -> str:
    """Return a program without comments, docstrings and blank lines, which are half of it: a store's values are small.

    The remaining lines are unchanged, so every version of Python gives the same text, and hosts aren't replaced because
    another version made it. (`ast.unparse` of Python 3.12 writes f-strings that 3.11 can't read.) Every statement must
    start on its own line, as ruff formats it.
    """
    lines = program.rstrip().split("\n")
    blank = set()
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        row, column = token.start[0] - 1, token.start[1]
        if token.type == tokenize.COMMENT:
            lines[row] = lines[row][:column].rstrip()
        elif token.type == tokenize.NL:
            blank.add(row)
    for text, is_all in _texts(parsed(program)):
        rows = range(text.lineno - 1, text.end_lineno or text.lineno)
        indentation = lines[rows[0]][: text.col_offset]
        for row in rows:
            lines[row] = ""
        blank.update(rows)
        if is_all:
            lines[rows[0]] = f"{indentation}pass"
    return "".join(f"{line}\n" for row, line in enumerate(lines) if line.strip() or row not in blank)


def _texts(tree: ast.Module) -> Iterator[tuple[ast.Expr, bool]]:
    """Yield statements that are just a string, such as docstrings, and whether it is the last of a body of only those."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            texts = [each for each in body if _is_text(each)]
            yield from ((each, len(texts) == len(body) and each is body[-1]) for each in texts)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
