"""AUD-001: how long audit logs are kept, within what bucket locks allow."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.quantities import format_duration_ms

_DAY_MS = 86_400_000
_LONGEST_DAYS = 36_500
"""The limit of S3 ("Object Lock considerations"), and a century in Cloud Storage; Azure's policies allow 400 years."""
_WHERE: Where = ("control_plane", "audit_log", "keep")


def kept_for_whole_days(subject: Subject) -> Iterator[Finding]:
    """Bucket locks count in days."""
    keep = subject.spec.control_plane.audit_log.keep
    setting = f"control_plane.audit_log.keep {format_duration_ms(keep)}"
    if keep < _DAY_MS:
        yield Finding(_WHERE, f"{setting} is under a day, the shortest time that a bucket lock can hold", "write 30d")
    elif keep > _LONGEST_DAYS * _DAY_MS:
        yield Finding(_WHERE, f"{setting} is longer than a bucket lock can hold", f"write {_LONGEST_DAYS}d")


RULES: tuple[tuple[str, Rule], ...] = (("AUD-001", kept_for_whole_days),)
