"""Where the toolkit and the project are on this machine.

A checkout is both. An installed toolkit works on the project that it is run in.
"""

from __future__ import annotations

import os
from pathlib import Path

TOOLKIT = Path(__file__).resolve().parent.parent
"""Code, roles and playbooks: a checkout, or what a wheel installed."""
FOLDER = "inventories"
VARIABLE = "MENAGERIE_PROJECT"


def is_installed() -> bool:
    """Whether the toolkit is a wheel's, and no checkout."""
    return not (TOOLKIT / "pyproject.toml").exists()


def find(working: Path | None = None) -> Path:
    """Return the project: what VARIABLE names, else the checkout, else the nearest folder above with inventories, else `working`.

    working: default: the working folder, which a checkout does not need; it may have been deleted.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    if not is_installed():
        return TOOLKIT
    here = working or Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / FOLDER).is_dir()), here)


ROOT = find()
"""The project: inventories, settings of stacks, this machine's state."""
