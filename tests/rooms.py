"""The table of folders in README.md, made of what each folder says of itself."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = ("stacks", "roles", "inventories", "etcd", "network", "tests")
"""What the project is used through, before what it is built of."""
HEAD = "| folder | purpose | inside |\n|---|---|---|\n"


def table() -> str:
    """One row a folder: its purpose, and the folders in it that say theirs."""
    there = [path.name for path in ROOT.iterdir() if path.name[0] not in "._" and _has_files(path)]
    names = sorted(there, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return HEAD + "".join(f"| `{name}/` | {purpose(ROOT / name)} | {_inside(ROOT / name)} |\n" for name in names)


def purpose(folder: Path) -> str:
    """The first line of its docstring, or of its README below the heading; "" where it has neither."""
    if (package := folder / "__init__.py").exists() and (text := ast.get_docstring(ast.parse(package.read_text()))):
        return text.splitlines()[0]
    pages = [page for name in ("README.md", "index.md") if (page := folder / name).exists()]
    lines = pages[0].read_text().splitlines() if pages else []
    return next((line for line in lines if line and not line.startswith("#")), "")


def _inside(folder: Path) -> str:
    return ", ".join(f"`{path.name}`" for path in sorted(folder.iterdir()) if path.is_dir() and _is_room(path))


def _has_files(folder: Path) -> bool:
    """A checkout keeps folders of compiled modules after their sources have moved."""
    return folder.is_dir() and any(path.name != "__pycache__" for path in folder.iterdir())


def _is_room(folder: Path) -> bool:
    return (folder / "__init__.py").exists() and purpose(folder) != ""


def written(text: str) -> str:
    """README.md with the table of today."""
    before, _, rest = text.partition(HEAD)
    return before + table() + rest[rest.index("\n\n") + 1 :]
