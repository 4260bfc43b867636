"""CFG-020: checksums of what hosts download. CFG-018 is the model's own."""

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
    """A checksum of another file than hosts, or the engine, ask for protects nothing."""
    spec = subject.spec
    wanted = {each.source for each in (*catalogue(spec.kubernetes.version).values(), *images.pulled(spec))}
    plugins = (plugin_of(spec.control_plane.cloud, system) for system in SYSTEMS)
    wanted |= {each.source for each in plugins if each}
    for key in _KEYS:
        for source in getattr(spec.artefacts, key):
            if source not in wanted:
                best = near(source, wanted)
                message = f"artefacts.{key} names {source}, which no host downloads{did_you_mean(source, wanted)}"
                hint = f"write {best[0]}" if best else "remove it; names are host/path, without a scheme"
                yield Finding(("artefacts", key, source), message, hint)


def replaced(subject: Subject) -> Iterator[Finding]:
    """Another checksum than the published one means another file: a mistake, or meant, and then it is said."""
    upstream, own = {**published(), **images.published()}, subject.spec.artefacts
    for source, given in own.sha256.items():
        if upstream.get(source, given) != given:
            message = f"artefacts.sha256 says {given} of {source}, and upstream publishes {upstream[source]}"
            hint = "remove it; of a build of your own, write it under artefacts.own_builds"
            yield Finding(("artefacts", "sha256", source), message, hint)
    for source, given in own.own_builds.items():
        before = f"upstream's {upstream[source]}" if source in upstream else "upstream's, of which no checksum is known"
        message = f"hosts run a build of your own of {source}: {given} in place of {before}"
        hint = "remove it, and hosts take upstream's again"
        yield Finding(("artefacts", "own_builds", source), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (("CFG-020", known_artefacts), ("CFG-020", replaced))
