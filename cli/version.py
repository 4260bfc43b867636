"""What this checkout is."""

from __future__ import annotations

import subprocess
import tomllib

from cluster import versions
from cluster.project import ROOT


def version() -> str:
    """``menagerie 0.1.0, Kubernetes 1.36.4, commit 0e9196d``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = f"menagerie {project['version']}, Kubernetes {versions.KUBERNETES}"
    if not (ROOT / ".git").exists():
        return told
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"{told}, commit {done.stdout.strip()}" if done.returncode == 0 else told
