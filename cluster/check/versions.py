"""CFG-004, VER-002: kubernetes.version is a release that this version of Menagerie supports."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import versions
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.releases import SUPPORTED, is_version, minor

_WHERE: Where = ("kubernetes", "version")


def is_a_version(subject: Subject) -> Iterator[Finding]:
    """The version has three numbers, as names of downloads do."""
    version = subject.spec.kubernetes.version
    if is_version(version):
        return
    plain = version.removeprefix("v")
    meant = plain if is_version(plain) else versions.KUBERNETES
    message = f'kubernetes.version "{version}" isn\'t major.minor.patch; no download has that name'
    yield Finding(_WHERE, message, f'write "{meant}"')


def supported(subject: Subject) -> Iterator[Finding]:
    """The minor version is one that flags, etcd and add-ons are written for and tested with."""
    version = subject.spec.kubernetes.version
    if not is_version(version) or minor(version) in SUPPORTED:
        return
    message = (
        f"kubernetes {version} isn't supported: flags, etcd {versions.ETCD} and CoreDNS {versions.COREDNS} are tested with "
        f"{' and '.join(SUPPORTED)}, and components of {minor(version)} may refuse them"
    )
    yield Finding(
        _WHERE, message, f'write "{versions.KUBERNETES}", or use the release of Menagerie for {minor(version)}'
    )


def served_by_the_lab(subject: Subject) -> Iterator[Finding]:
    """In a lab, the patch version is the one that `tools/` builds for the lab's mirror."""
    version = subject.spec.kubernetes.version
    if not subject.cluster.is_lab or not is_version(version) or minor(version) not in SUPPORTED:
        return
    built = SUPPORTED[minor(version)].tested
    if version != built:
        message = f"kubernetes {version} isn't in the lab's mirror, which has {built}"
        yield Finding(_WHERE, message, f'write "{built}"', also=(("control_plane", "cloud"),))


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-004", is_a_version),
    ("VER-002", supported),
    ("VER-002", served_by_the_lab),
)
