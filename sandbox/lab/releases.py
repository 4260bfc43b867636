"""The releases of Kubernetes that a lab's mirror and registry offer: those that were built."""

from __future__ import annotations

from collections.abc import Iterable

from cluster import versions
from cluster.releases import SUPPORTED
from tools import build, manifest


def built(programs: Iterable[str]) -> tuple[str, ...]:
    """Return the versions of which the cache has all these programs, oldest first.

    Both versions are there while a cluster is upgraded from one to the other.
    """
    programs_in_cache = {str(state["program"]) for state in build.states() if state["built"]}
    names = tuple(programs)
    tested = (release.tested for release in SUPPORTED.values())
    return tuple(
        version for version in tested if all(manifest.at(name, version) in programs_in_cache for name in names)
    )


def of(programs: Iterable[str], kubernetes: str) -> tuple[str, ...]:
    """Return the names in tools/ of a version's programs. Raises LookupError for a version that is not built here."""
    if kubernetes not in {release.tested for release in SUPPORTED.values()}:
        raise LookupError(f"tools/programs.toml builds no Kubernetes {kubernetes}; the newest is {versions.KUBERNETES}")
    return tuple(manifest.at(name, kubernetes) for name in programs)
