"""CFG-018, CFG-020: where programs and images come from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.artefacts import catalogue
from cluster.check.finding import Finding, Rule, Subject
from cluster.fields import did_you_mean, near


def artefact_addresses(subject: Subject) -> Iterator[Finding]:
    """A mirror is a URL that paths are added to; a registry is a host and a port, as in an image's name."""
    mirror, registry = subject.spec.artefacts.mirror, subject.spec.artefacts.registry
    if mirror is not None and (mirror.endswith("/") or not re.fullmatch(r"https?://[^/\s]+(/\S*)?", mirror)):
        meant = mirror.strip().rstrip("/")
        meant = meant if meant.startswith(("http://", "https://")) else f"https://{meant.split('://')[-1]}"
        message = f"artefacts.mirror {mirror} isn't a base URL; host and path are added to it after a '/'"
        yield Finding(("artefacts", "mirror"), message, f"write {meant}")
    if registry is not None and not re.fullmatch(r"[A-Za-z0-9.-]+(:\d{1,5})?", registry):
        meant = registry.strip().split("://")[-1].split("/")[0]
        message = f"artefacts.registry {registry} isn't host:port; images would have names that no runtime can pull"
        yield Finding(("artefacts", "registry"), message, f"write {meant}")


def known_artefacts(subject: Subject) -> Iterator[Finding]:
    """A checksum of another file than hosts ask for protects nothing."""
    wanted = {each.source for each in catalogue(subject.spec.kubernetes.version).values()}
    for source in subject.spec.artefacts.sha256:
        if source not in wanted:
            best = near(source, wanted)
            message = f"artefacts.sha256 names {source}, which no host downloads{did_you_mean(source, wanted)}"
            hint = f"write {best[0]}" if best else "remove it; names are host/path, without a scheme"
            yield Finding(("artefacts", "sha256", source), message, hint)


RULES: tuple[tuple[str, Rule], ...] = (("CFG-018", artefact_addresses), ("CFG-020", known_artefacts))
