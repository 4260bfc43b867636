"""CFG-018: where programs and images come from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject


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


RULES: tuple[tuple[str, Rule], ...] = (("CFG-018", artefact_addresses),)
