"""Which releases of Kubernetes a lab's mirror and registry offer: those that were built."""

from __future__ import annotations

from collections.abc import Iterable

from cluster import versions
from cluster.releases import SUPPORTED
from tools import build, manifest


def built(programs: Iterable[str]) -> tuple[str, ...]:
    """Versions of which all these programs are in the cache, oldest first: both while a cluster goes from one to the other."""
    there = {str(state["program"]) for state in build.states() if state["built"]}
    names = tuple(programs)
    known = (release.tested for release in SUPPORTED.values())
    return tuple(each for each in known if all(manifest.at(name, each) in there for name in names))


def of(programs: Iterable[str], kubernetes: str) -> tuple[str, ...]:
    """What the programs of a version are called in tools/. LookupError for a version that nothing here builds."""
    if kubernetes not in {release.tested for release in SUPPORTED.values()}:
        raise LookupError(f"tools/programs.toml builds no Kubernetes {kubernetes}; the newest is {versions.KUBERNETES}")
    return tuple(manifest.at(name, kubernetes) for name in programs)
