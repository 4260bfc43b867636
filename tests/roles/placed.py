"""Programs of hosts, placed under a test's folder as by role and lookup."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def placed(files: list[dict[str, Any]], root: Path) -> str:
    """Place all `files` below `root`. Return the path of the last one, which is the command."""
    path = root
    for file in files:
        path = root / file["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"].replace("/usr/local/lib/", f"{root}/usr/local/lib/"))
        path.chmod(int(file["mode"], 8))
    return str(path)
