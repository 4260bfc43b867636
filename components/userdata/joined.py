"""Joins the modules of a host program into one file."""

from __future__ import annotations

import ast
from pathlib import Path

from cluster.programs import parsed


def joined(about: Path, modules: tuple[Path, ...]) -> str:
    """Return several modules as one file. User data is short, and separate files or a zipapp (PEP 441) compress worse.

    Each module starts with its imports, and imports from the others with `from .name import`, without renaming. The
    last one has ``main``. about: the package whose docstring describes the program.
    """
    imports: set[str] = set()
    bodies = []
    for module in modules:
        text = module.read_text()
        nodes = [node for node in parsed(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        imports |= {line for node in nodes for line in _of_the_library(node)}
        bodies.append("".join(text.splitlines(keepends=True)[nodes[-1].end_lineno :]))
    first = "from __future__ import annotations"
    head = ["#!/usr/bin/python3", (about / "__init__.py").read_text(), first, *sorted(imports - {first})]
    return "\n".join(head) + "\n" + "".join(bodies) + '\n\nif __name__ == "__main__":\n    main()\n'


def _of_the_library(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return one import line for each name from Python's library; imports between the modules are dropped."""
    if isinstance(node, ast.Import):
        return [f"import {alias.name}" for alias in node.names]
    return [] if node.level else [f"from {node.module} import {alias.name}" for alias in node.names]
