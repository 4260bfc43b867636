"""REG-002: mirrors of registries that go together. REG-001 is the model's own, REG-003 the loader's."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.registries import EVERY, Registries
from cluster.spec import Profile


def _registries(subject: Subject) -> Iterator[tuple[str, Where, Registries]]:
    for name, site in subject.spec.sites.items():
        if site.registries:
            yield name, ("sites", name, "registries"), site.registries


def mirrors(subject: Subject) -> Iterator[Finding]:
    """A mirror asked once for a registry, and none for itself."""
    for name, where, registries in _registries(subject):
        if not registries.mirrors:
            hint = "name one, or remove registries"
            yield Finding((*where, "mirrors"), f"{name} has no mirror; no registry would be asked for an image", hint)
        seen: dict[tuple[str, str], Where] = {}
        for index, mirror in enumerate(registries.mirrors):
            place = (*where, "mirrors", index)
            for registry in mirror.of or (EVERY,):
                before = seen.setdefault((mirror.address, registry), place)
                if before != place:
                    what = "every registry" if registry == EVERY else registry
                    message = f"{mirror.address} is twice among the mirrors of {what}; the second is never asked"
                    yield Finding(place, message, "remove one of the two", also=(before,))
                if registry == mirror.address:
                    message = f"{registry} can't stand in for itself"
                    yield Finding((*place, "of"), message, f"leave {registry} out of it")


def plain(subject: Subject) -> Iterator[Finding]:
    """Without TLS nothing is signed, and whoever is on the way may change an image that is named by a tag. Menagerie's own are
    pulled by digest, whose bytes containerd checks; what teams name is theirs to say, and no setting of containerd's asks for it."""
    for name, where, registries in _registries(subject):
        if registries.plain_http and registries.ca:
            message = f"the mirrors of {name} have an authority, and are spoken to without TLS"
            yield Finding((*where, "ca"), message, "remove plain_http or ca", also=((*where, "plain_http"),))
        elif registries.plain_http and subject.spec.profile is Profile.PRODUCTION:
            message = f"the mirrors of {name} are spoken to without TLS: whoever is on the way chooses what teams' images hold "
            message += "that are named by a tag"
            hint = "give the mirrors a certificate, and write its authority as ca"
            yield Finding((*where, "plain_http"), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (("REG-002", mirrors), ("REG-002", plain))
