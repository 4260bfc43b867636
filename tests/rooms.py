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
    return HEAD + "".join(
        f"| `{folder.name}/` | {purpose(folder)} | {'; '.join(f'`{name}` {text}' for name, text in inside(folder).items())} |\n"
        for folder in folders()
    )


def folders() -> list[Path]:
    """Return the folders at the top level, in the order of the table."""
    paths = [path for path in ROOT.iterdir() if path.name[0] not in "._" and _has_files(path)]
    return sorted(paths, key=lambda path: (FIRST.index(path.name) if path.name in FIRST else len(FIRST), path.name))


def purpose(folder: Path) -> str:
    """Return the first line of a folder's docstring, or of its README below the heading; "" if it has neither."""
    if (package := folder / "__init__.py").exists() and (text := ast.get_docstring(ast.parse(package.read_text()))):
        return text.splitlines()[0]
    pages = [page for name in ("README.md", "index.md") if (page := folder / name).exists()]
    lines = pages[0].read_text().splitlines() if pages else []
    return next((line for line in lines if line and not line.startswith("#")), "")


def inside(folder: Path) -> dict[str, str]:
    """Return the subfolders that have a purpose, with its first sentence, without the full stop."""
    rooms = [path for path in sorted(folder.iterdir()) if path.is_dir() and _is_room(path)]
    return {room.name: purpose(room).split(". ")[0].rstrip(".") for room in rooms}


def _has_files(folder: Path) -> bool:
    """Whether a folder has more than compiled modules, which a checkout keeps after their sources have moved."""
    return folder.is_dir() and any(path.name != "__pycache__" for path in folder.iterdir())


def _is_room(folder: Path) -> bool:
    return (folder / "__init__.py").exists() and purpose(folder) != ""


def written(text: str) -> str:
    """Return the text of README.md with the current table."""
    before, _, rest = text.partition(HEAD)
    return before + table() + rest[rest.index("\n\n") + 1 :]
