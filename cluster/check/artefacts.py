"""CFG-020: checksums of what hosts download. The model itself reports CFG-018."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import images
from cluster.artefacts import catalogue
from cluster.check.finding import Finding, Rule, Subject
from cluster.fields import did_you_mean, near
from cluster.plugins import SYSTEMS, plugin_of
from cluster.sources import published

_KEYS = ("sha256", "own_builds")


def known_artefacts(subject: Subject) -> Iterator[Finding]:
    """A checksum of a file that neither hosts nor the engine download protects nothing."""
    spec = subject.spec
    downloaded = {artefact.source for artefact in (*catalogue(spec.kubernetes.version).values(), *images.pulled(spec))}
    plugins = (plugin_of(spec.control_plane.cloud, system) for system in SYSTEMS)
    downloaded |= {artefact.source for artefact in plugins if artefact}
    for key in _KEYS:
        for source in getattr(spec.artefacts, key):
            if source not in downloaded:
                best = near(source, downloaded)
                message = f"artefacts.{key} names {source}, which no host downloads{did_you_mean(source, downloaded)}"
                hint = f"write {best[0]}" if best else "remove it; names have the form host/path, without a scheme"
                yield Finding(("artefacts", key, source), message, hint)


def replaced(subject: Subject) -> Iterator[Finding]:
    """A checksum that differs from the published one is a mistake, unless own_builds declares the file."""
    upstream, artefacts = {**published(), **images.published()}, subject.spec.artefacts
    for source, checksum in artefacts.sha256.items():
        if upstream.get(source, checksum) != checksum:
            message = f"artefacts.sha256 of {source} is {checksum}, but upstream publishes {upstream[source]}"
            hint = "remove it; for a build of your own, write it under artefacts.own_builds"
            yield Finding(("artefacts", "sha256", source), message, hint)
    for source, checksum in artefacts.own_builds.items():
        replaced_build = (
            f"upstream's {upstream[source]}" if source in upstream else "upstream's, whose checksum isn't known"
        )
        message = f"hosts run your own build of {source}: {checksum} in place of {replaced_build}"
        hint = "to go back to upstream's build, remove it"
        yield Finding(("artefacts", "own_builds", source), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (("CFG-020", known_artefacts), ("CFG-020", replaced))
