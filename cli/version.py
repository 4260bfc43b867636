"""The version of this toolkit."""

from __future__ import annotations

import subprocess
import tomllib
from importlib import metadata

from cluster import versions
from cluster.project import TOOLKIT, is_installed


def version() -> str:
    """Return the version, such as ``menagerie 0.1.0, Kubernetes 1.36.4, commit 0e9196d``."""
    text = f"menagerie {_release()}, Kubernetes {versions.KUBERNETES}"
    if not (TOOLKIT / ".git").exists():
        return text
    git = subprocess.run(
        ["git", "-C", str(TOOLKIT), "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"{text}, commit {git.stdout.strip()}" if git.returncode == 0 else text


def _release() -> str:
    if is_installed():
        return metadata.version("menagerie")
    return str(tomllib.loads((TOOLKIT / "pyproject.toml").read_text())["project"]["version"])
