"""AUD-001: for how long audit logs are kept, and what buckets' locks can hold."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.quantities import format_duration_ms

_DAY_MS = 86_400_000
_LONGEST_DAYS = 36_500
""" "Object Lock considerations" of S3, and a century in Cloud Storage; Azure's policies take 400 years."""
_WHERE: Where = ("control_plane", "audit_log", "keep")


def kept(subject: Subject) -> Iterator[Finding]:
    """Locks count in days."""
    keep = subject.spec.control_plane.audit_log.keep
    told = f"control_plane.audit_log.keep {format_duration_ms(keep)}"
    if keep < _DAY_MS:
        yield Finding(_WHERE, f"{told} is under a day, the least that a lock of a bucket holds", "write 30d")
    elif keep > _LONGEST_DAYS * _DAY_MS:
        yield Finding(_WHERE, f"{told} is longer than a lock of a bucket holds", f"write {_LONGEST_DAYS}d")


RULES: tuple[tuple[str, Rule], ...] = (("AUD-001", kept),)
