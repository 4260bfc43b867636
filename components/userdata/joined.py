"""The modules of a program for hosts as one file."""

from __future__ import annotations

import ast
from pathlib import Path

from cluster.programs import parsed


def joined(about: Path, modules: tuple[Path, ...]) -> str:
    """One file of several modules: it packs smaller than they do, or a zipapp (PEP 441), and user data is short.

    Each begins with its imports, and imports from the others by `from .name import`, without other names. The last has
    ``main``. about: the package whose docstring says what the program does.
    """
    imports: set[str] = set()
    bodies = []
    for module in modules:
        text = module.read_text()
        found = [node for node in parsed(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        imports |= {line for node in found for line in _of_the_library(node)}
        bodies.append("".join(text.splitlines(keepends=True)[found[-1].end_lineno :]))
    first = "from __future__ import annotations"
    head = ["#!/usr/bin/python3", (about / "__init__.py").read_text(), first, *sorted(imports - {first})]
    return "\n".join(head) + "\n" + "".join(bodies) + '\n\nif __name__ == "__main__":\n    main()\n'


def _of_the_library(node: ast.Import | ast.ImportFrom) -> list[str]:
    """One line for each name that is not another module's of ours."""
    if isinstance(node, ast.Import):
        return [f"import {alias.name}" for alias in node.names]
    return [] if node.level else [f"from {node.module} import {alias.name}" for alias in node.names]
