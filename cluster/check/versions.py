"""CFG-004, VER-002: kubernetes.version beside what this release of Menagerie is pinned to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster import versions
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where

_WHERE: Where = ("kubernetes", "version")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def is_a_version(subject: Subject) -> Iterator[Finding]:
    """Downloads are named by all three numbers."""
    version = subject.spec.kubernetes.version
    if _VERSION.fullmatch(version):
        return
    plain = version.removeprefix("v")
    meant = plain if _VERSION.fullmatch(plain) else versions.KUBERNETES
    message = f'kubernetes.version "{version}" isn\'t major.minor.patch; no download has that name'
    yield Finding(_WHERE, message, f'write "{meant}"')


def supported(subject: Subject) -> Iterator[Finding]:
    """Flags, etcd and add-ons are written for one minor version."""
    version = subject.spec.kubernetes.version
    minor, pinned = _minor(version), _minor(versions.KUBERNETES)
    if minor in ("", pinned):
        return
    message = (
        f"kubernetes {version} isn't supported: flags, etcd {versions.ETCD} and CoreDNS {versions.COREDNS} here are "
        f"those of {pinned}, and components of {minor} may refuse them"
    )
    yield Finding(_WHERE, message, f'write "{versions.KUBERNETES}", or use the release of Menagerie for {minor}')


def served_by_the_lab(subject: Subject) -> Iterator[Finding]:
    """The lab's mirror holds what `tools/` builds, and that is one version."""
    version = subject.spec.kubernetes.version
    patch = version != versions.KUBERNETES and _minor(version) == _minor(versions.KUBERNETES)
    if patch and subject.cluster.is_lab:
        message = (
            f"kubernetes {version} isn't in the lab's mirror, which holds what is built here: {versions.KUBERNETES}"
        )
        yield Finding(_WHERE, message, f'write "{versions.KUBERNETES}"', also=(("control_plane", "cloud"),))


def _minor(version: str) -> str:
    """1.36.4 -> 1.36; "" for what isn't a version."""
    return version.rpartition(".")[0] if _VERSION.fullmatch(version) else ""


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-004", is_a_version),
    ("VER-002", supported),
    ("VER-002", served_by_the_lab),
)
