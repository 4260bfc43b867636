"""What a bundle of some clusters must have, and which checksums are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster import images, rook
from cluster.artefacts import Artefact
from cluster.bundles import Entry, Kind, Known
from cluster.errors import RefusedError
from cluster.plugins import plugin_of
from cluster.sources import downloads, upstream
from cluster.spec import Cluster


@dataclass(frozen=True)
class NeededArtefact:
    """A program, plugin or image. pin: its SHA-256 as far as it is known; known: from where."""

    kind: Kind
    artefact: Artefact
    clusters: tuple[str, ...]
    pin: str = ""
    known: Known = Known.PLACE

    @property
    def source(self) -> str:
        return self.artefact.source

    @property
    def title(self) -> str:
        return f"{self.artefact.name} {self.artefact.version} ({self.source})"

    def entry(self, media: str = "", needs: tuple[str, ...] = ()) -> Entry:
        """Return the entry of a bundle, once `pin` is verified. media, needs: of an image."""
        name, version = self.artefact.name, self.artefact.version
        return Entry(
            kind=self.kind,
            name=name,
            version=version,
            source=self.source,
            sha256=self.pin,
            media=media,
            needs=needs,
            clusters=self.clusters,
            known=self.known,
        )


def needed_artefacts(clusters: Sequence[Cluster], systems: Iterable[str]) -> tuple[NeededArtefact, ...]:
    """Return what the clusters need, by source. systems: of operators' machines, for provider plugins.

    Without labs, which `operations.bundles.lab` is for. Raises RefusedError for clusters that contradict each other.
    """
    by_source: dict[str, NeededArtefact] = {}
    for cluster in (each for each in clusters if not each.is_lab):
        for kind, artefact in _of(cluster, tuple(systems)):
            pin, known = _pin(cluster, artefact.source)
            before = by_source.get(artefact.source, NeededArtefact(kind, artefact, (), pin, known))
            if pin and before.pin and pin != before.pin:
                raise RefusedError(
                    f"{artefact.source} has SHA-256 {before.pin} in {before.clusters[0]}, but {pin} in {cluster.name}; make a "
                    "bundle for each of them",
                    code="bundle",
                )
            best = (pin, known) if pin else (before.pin, before.known)
            by_source[artefact.source] = NeededArtefact(kind, artefact, (*before.clusters, cluster.name), *best)
    return tuple(by_source[source] for source in sorted(by_source))


def _of(cluster: Cluster, systems: tuple[str, ...]) -> Iterable[tuple[Kind, Artefact]]:
    for artefact in (*downloads(cluster.spec), *rook.pulled(cluster.spec)):
        yield (Kind.IMAGE if images.is_image(artefact) else Kind.PROGRAM), artefact
    for artefact in rook.manifests(cluster.spec):
        yield Kind.MANIFEST, artefact
    for system in systems:
        if plugin := plugin_of(cluster.spec.control_plane.cloud, system):
            yield Kind.PLUGIN, plugin


def _pin(cluster: Cluster, source: str) -> tuple[str, Known]:
    own = cluster.spec.artefacts
    if source in own.own_builds:
        return own.own_builds[source], Known.BUILD
    if source in upstream():
        return upstream()[source], Known.PUBLISHED
    return own.sha256.get(source, ""), Known.SPEC if source in own.sha256 else Known.PLACE
