"""The version of this toolkit."""

from __future__ import annotations

from cluster import versions
from cluster.revision import revision


def version() -> str:
    """Return the version, such as ``menagerie 0.1.0, Kubernetes 1.36.4, commit 0e9196d``."""
    own = revision()
    commit = f", commit {own.short}" if own.commit else ""
    return f"menagerie {own.release}, Kubernetes {versions.KUBERNETES}{commit}"
