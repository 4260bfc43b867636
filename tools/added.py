"""Modules whose programs embed files that only their releases have, such as compiled pages: a copy with texts in their place.

Go refuses overlays on its module cache.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tools import files
from tools.golang import Go
from tools.manifest import Module


def flags(module: Module, go: Go, folder: Path) -> list[str]:
    """Return the flags with which go builds from a copy of the pinned module in `folder`, which has its added files.

    No flags, and no copy, for a module that lacks nothing. Raises FailedError as `tools.files` does.
    """
    if not module.adds:
        return []
    copy = folder / "module"
    shutil.copytree(files.downloaded(module, go), copy, copy_function=shutil.copyfile)
    for place in (copy, *copy.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    for name, text in module.adds.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text)
    shutil.copyfile(module.folder / "go.sum", folder / "go.sum")
    replaced = f"{(module.folder / 'go.mod').read_text()}\nreplace {module.pin} => {copy}\n"
    (folder / "go.mod").write_text(replaced)
    return [f"-modfile={folder / 'go.mod'}"]
