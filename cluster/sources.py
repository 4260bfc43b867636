"""Where hosts in a cloud download from, and the checksums of downloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from cluster import images, rook
from cluster.artefacts import Artefact, ArtefactSource, catalogue
from cluster.bundles import collecting
from cluster.document import parse
from cluster.plugins import SYSTEMS, plugin_of
from cluster.spec import Cloud, ClusterSpec

_FILE = Path(__file__).with_name("checksums.yaml")
_OF_OPERATORS = frozenset({"kubectl"})
"""Programs for operators, which no host downloads."""
_OF_BACKUPS = frozenset({"restic"})
"""Programs that hosts download only if an etcd has backups."""


@cache
def published() -> dict[str, str]:
    """Return the checksums that upstream publishes: `Artefact.source` -> SHA-256."""
    return dict(parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data)


def upstream() -> dict[str, str]:
    """Return all published checksums, of programs, images and manifests."""
    return {**published(), **images.published(), **rook.published()}


def source_of(spec: ClusterSpec) -> ArtefactSource:
    """Return where to download from, with published checksums and the spec's; own_builds replace published ones."""
    settings = spec.artefacts
    checksums = {**upstream(), **settings.sha256, **settings.own_builds}
    return ArtefactSource(settings.mirror, checksums, settings.registry)


def downloads(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Return what the cluster's hosts download: programs and images."""
    unused = _OF_OPERATORS if spec.has_backups else _OF_OPERATORS | _OF_BACKUPS
    everything: Iterable[Artefact] = (*catalogue(spec.kubernetes.version).values(), *images.pulled(spec))
    return tuple(artefact for artefact in everything if artefact.name not in unused)


def downloaded(spec: ClusterSpec) -> frozenset[str]:
    """Return host/path of everything that a checksum in the spec may be for, also what only operators download."""
    plugins = (plugin_of(spec.control_plane.cloud, system) for system in SYSTEMS)
    hosts = (*catalogue(spec.kubernetes.version).values(), *images.pulled(spec))
    return frozenset(artefact.source for artefact in (*hosts, *plugins) if artefact)


def without_checksum(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Return downloads and images without a known checksum, which no host would accept."""
    checksums = source_of(spec).sha256
    return tuple(artefact for artefact in downloads(spec) if artefact.source not in checksums)


def missing_checksums(spec: ClusterSpec) -> Iterator[str]:
    """Yield a message with each checksum that the spec lacks to build the cluster. A lab knows those of what it serves."""
    unknown = () if spec.control_plane.cloud is Cloud.LAB else without_checksum(spec)
    if unknown:
        yield (
            f"the checksums of {len(unknown)} programs and images aren't known, so no host would accept them; to collect and "
            f"verify them, run: {collecting(spec.name)}"
        )
    yield from (f"  {artefact.source}" for artefact in unknown)
