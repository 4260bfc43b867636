"""The release of this toolkit, and the commit of a checkout."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cluster.project import TOOLKIT

_SHORT = 7
"""Digits of an abbreviated commit, as Git has by default."""


@dataclass(frozen=True)
class Revision:
    """release: such as 0.2.0. commit: all digits of the checkout's commit; "" for an installed toolkit, and without Git.

    changed: whether the checkout differs from the commit, in files that Git tracks or in new ones.
    """

    release: str
    commit: str = ""
    changed: bool = False

    @property
    def short(self) -> str:
        """The commit in few digits, such as ``0e9196d-dirty``; "" without one."""
        return f"{self.commit[:_SHORT]}{'-dirty' * self.changed}"

    def __str__(self) -> str:
        if not self.commit:
            return f"release {self.release}, no commit"
        return f"release {self.release}, commit {self.commit}{', with uncommitted changes' * self.changed}"


def revision(toolkit: Path = TOOLKIT) -> Revision:
    """Return the revision of the toolkit. Takes Git about 30 ms."""
    release = _release(toolkit)
    # Elsewhere Git would answer for a repository that the toolkit happens to be in.
    status = _git_status(toolkit) if (toolkit / ".git").exists() else ""
    head, *rest = status.splitlines() or [""]
    commit = head.removeprefix("# branch.oid ")
    if commit == "(initial)":
        return Revision(release)
    return Revision(release, commit, any(not line.startswith("#") for line in rest))


def _git_status(toolkit: Path) -> str:
    """Return git-status(1) in format 2, whose first line is ``# branch.oid <commit>``; "" if Git is missing or fails."""
    # Git refuses the checkout of another user, as under sudo. Its code already runs here, so Git adds no risk.
    command = ["git", "--no-optional-locks", "-c", f"safe.directory={toolkit}", "-C", str(toolkit)]
    try:
        git = subprocess.run(
            [*command, "status", "--porcelain=2", "--branch"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return git.stdout if git.returncode == 0 else ""


def _release(toolkit: Path) -> str:
    try:
        project = (toolkit / "pyproject.toml").read_text()
    except FileNotFoundError:
        return metadata.version("menagerie")
    return str(tomllib.loads(project)["project"]["version"])
