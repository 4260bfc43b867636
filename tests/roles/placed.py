"""Programs of hosts, as role and lookup place them, under a folder of the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def placed(files: list[dict[str, Any]], root: Path) -> str:
    """The last of `files`, which is the command, with all of them below `root`."""
    path = root
    for file in files:
        path = root / file["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"].replace("/usr/local/lib/", f"{root}/usr/local/lib/"))
        path.chmod(int(file["mode"], 8))
    return str(path)
