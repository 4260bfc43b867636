"""REG-002: mirrors of registries that fit together. The model reports REG-001, the loader REG-003."""

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
    """Each mirror is listed once for a registry, and never for itself."""
    for name, where, registries in _registries(subject):
        if not registries.mirrors:
            hint = "add a mirror, or remove registries"
            yield Finding(
                (*where, "mirrors"),
                f"registries of {name} has no mirror, so hosts would have no registry to pull from",
                hint,
            )
        places: dict[tuple[str, str], Where] = {}
        for index, mirror in enumerate(registries.mirrors):
            place = (*where, "mirrors", index)
            for registry in mirror.of or (EVERY,):
                before = places.setdefault((mirror.address, registry), place)
                if before != place:
                    what = "every registry" if registry == EVERY else registry
                    message = f"{mirror.address} is listed twice as a mirror of {what}; the second entry is never used"
                    yield Finding(place, message, "remove one of the two", also=(before,))
                if registry == mirror.address:
                    message = f"{registry} can't be a mirror of itself"
                    yield Finding((*place, "of"), message, f"remove {registry} from of")


def mirrors_without_tls(subject: Subject) -> Iterator[Finding]:
    """Warn of mirrors without TLS: anybody on the way can change an image that is pulled by tag.

    Menagerie's own images are pulled by digest, which containerd verifies. Teams choose how they name theirs, and
    containerd has no setting that requires a digest.
    """
    for name, where, registries in _registries(subject):
        if registries.plain_http and registries.ca:
            message = f"the mirrors of {name} have a ca, but plain_http turns TLS off"
            yield Finding((*where, "ca"), message, "remove plain_http or ca", also=((*where, "plain_http"),))
        elif registries.plain_http and subject.spec.profile is Profile.PRODUCTION:
            message = f"the mirrors of {name} are used without TLS: anybody on the way can change the content of "
            message += "teams' images that are pulled by tag"
            hint = "give the mirrors a certificate, and write its CA as ca"
            yield Finding((*where, "plain_http"), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (("REG-002", mirrors), ("REG-002", mirrors_without_tls))
