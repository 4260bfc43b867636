"""The version of this checkout."""

from __future__ import annotations

import subprocess
import tomllib

from cluster import versions
from cluster.project import ROOT


def version() -> str:
    """Return the version, such as ``menagerie 0.1.0, Kubernetes 1.36.4, commit 0e9196d``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = f"menagerie {project['version']}, Kubernetes {versions.KUBERNETES}"
    if not (ROOT / ".git").exists():
        return text
    git = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"{text}, commit {git.stdout.strip()}" if git.returncode == 0 else text
