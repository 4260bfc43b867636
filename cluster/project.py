"""Where the toolkit and the project are on this machine.

A checkout is both. An installed toolkit works on the project that it is run in.
"""

from __future__ import annotations

import os
from pathlib import Path

from cluster.errors import FailedError

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
    try:
        here = working or Path.cwd()
    except FileNotFoundError:  # it was deleted; folders above it may be there
        here = Path(os.environ.get("PWD") or "/")
    return next((folder for folder in (here, *here.parents) if (folder / FOLDER).is_dir()), here)


def working_folder() -> str:
    """Return the folder that this process works in. Raises FailedError if it was deleted, with its name if a shell tells it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        name = os.environ.get("PWD") or "the working folder"
        raise FailedError(
            f"{name} was deleted, and this command runs in it; change to another one: cd ~", code="file"
        ) from None


ROOT = find()
"""The project: inventories, settings of stacks, this machine's state."""
