"""CFG-020: checksums of what hosts download. The model itself reports CFG-018."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.fields import did_you_mean, near
from cluster.sources import downloaded, upstream

_KEYS = ("sha256", "own_builds")


def known_artefacts(subject: Subject) -> Iterator[Finding]:
    """A checksum of a file that neither hosts nor the engine download protects nothing."""
    spec = subject.spec
    known = downloaded(spec)
    for key in _KEYS:
        for source in getattr(spec.artefacts, key):
            if source not in known:
                best = near(source, known)
                message = f"artefacts.{key} names {source}, which no host downloads{did_you_mean(source, known)}"
                hint = f"write {best[0]}" if best else "remove it; names have the form host/path, without a scheme"
                yield Finding(("artefacts", key, source), message, hint)


def replaced(subject: Subject) -> Iterator[Finding]:
    """A checksum that differs from the published one is a mistake, unless own_builds declares the file."""
    published, artefacts = upstream(), subject.spec.artefacts
    for source, checksum in artefacts.sha256.items():
        if published.get(source, checksum) != checksum:
            message = f"artefacts.sha256 of {source} is {checksum}, but upstream publishes {published[source]}"
            hint = "remove it; for a build of your own, write it under artefacts.own_builds"
            yield Finding(("artefacts", "sha256", source), message, hint)
    for source, checksum in artefacts.own_builds.items():
        replaced_build = (
            f"upstream's {published[source]}" if source in published else "upstream's, whose checksum isn't known"
        )
        message = f"hosts run your own build of {source}: {checksum} in place of {replaced_build}"
        hint = "to go back to upstream's build, remove it"
        yield Finding(("artefacts", "own_builds", source), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (("CFG-020", known_artefacts), ("CFG-020", replaced))
