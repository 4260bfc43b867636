"""The table of folders in README.md, built from each folder's own description."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = ("stacks", "roles", "inventories", "etcd", "network", "tests")
"""What users of the project work with, before its building blocks."""
HEAD = "| folder | purpose | inside |\n|---|---|---|\n"


def table() -> str:
    """Return one row per folder: its purpose, and its subfolders that have one."""
    folders = [path.name for path in ROOT.iterdir() if path.name[0] not in "._" and _has_files(path)]
    names = sorted(folders, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return HEAD + "".join(f"| `{name}/` | {purpose(ROOT / name)} | {_inside(ROOT / name)} |\n" for name in names)


def purpose(folder: Path) -> str:
    """Return the first line of a folder's docstring, or of its README below the heading; "" if it has neither."""
    if (package := folder / "__init__.py").exists() and (text := ast.get_docstring(ast.parse(package.read_text()))):
        return text.splitlines()[0]
    pages = [page for name in ("README.md", "index.md") if (page := folder / name).exists()]
    lines = pages[0].read_text().splitlines() if pages else []
    return next((line for line in lines if line and not line.startswith("#")), "")


def _inside(folder: Path) -> str:
    return "; ".join(
        f"`{path.name}` {_clause(path)}" for path in sorted(folder.iterdir()) if path.is_dir() and _is_room(path)
    )


def _clause(folder: Path) -> str:
    """Return the first sentence of a folder's purpose, without "The" and its own name."""
    return purpose(folder).split(". ")[0].rstrip(".").removeprefix("The ").removeprefix(f"`{folder.name}`: ")


def _has_files(folder: Path) -> bool:
    """Whether a folder has more than compiled modules, which a checkout keeps after their sources have moved."""
    return folder.is_dir() and any(path.name != "__pycache__" for path in folder.iterdir())


def _is_room(folder: Path) -> bool:
    return (folder / "__init__.py").exists() and purpose(folder) != ""


def written(text: str) -> str:
    """Return the text of README.md with the current table."""
    before, _, rest = text.partition(HEAD)
    return before + table() + rest[rest.index("\n\n") + 1 :]
