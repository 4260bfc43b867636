"""CFG-004, VER-002: kubernetes.version beside what this release of Menagerie is pinned to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster import versions
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where

_WHERE: Where = ("kubernetes", "version")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


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
    found, pinned = (_VERSION.fullmatch(text) for text in (subject.spec.kubernetes.version, versions.KUBERNETES))
    if not found or not pinned or found.group(1, 2) == pinned.group(1, 2):
        return
    minor = ".".join(found.group(1, 2))
    message = (
        f"kubernetes {found[0]} isn't supported: flags, etcd {versions.ETCD} and CoreDNS {versions.COREDNS} here are "
        f"those of {'.'.join(pinned.group(1, 2))}, and components of {minor} may refuse them"
    )
    yield Finding(_WHERE, message, f'write "{versions.KUBERNETES}", or use the release of Menagerie for {minor}')


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-004", is_a_version),
    ("VER-002", supported),
)
