"""ETC-009: backups and drills of each etcd, and what the cloud's bucket can keep."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Subject
from cluster.document import Where
from cluster.quantities import format_duration_ms
from cluster.spec import Backup, Cloud, RoleName

_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
LONGEST_DAYS = {Cloud.AZURE: 365, Cloud.GCP: 90}
"""How long a bucket can restore deleted objects: Azure's "Soft delete for blobs", "Soft delete" of Cloud Storage."""


def backups(subject: Subject) -> Iterator[Finding]:
    """A backup must be kept until after the next backup and the drill that tests it."""
    etcds: tuple[tuple[RoleName, Backup | None], ...] = (
        ("main", subject.spec.etcd.main.backup),
        ("events", subject.spec.etcd.events.backup),
    )
    for role, backup in etcds:
        if backup is not None:
            yield from _times(role, backup)
            yield from _in_bucket(role, backup, subject.spec.control_plane.cloud)


def _times(role: RoleName, backup: Backup) -> Iterator[Finding]:
    every, keep, drill = map(format_duration_ms, (backup.every, backup.keep, backup.drill))
    name = f"etcd.{role}.backup"
    where: Where = ("etcd", role, "backup")
    if backup.every < _MINUTE_MS:
        message = f"{name}.every {every} is under a minute; snapshots would run without a pause"
        yield Finding((*where, "every"), message, "write 15m")
    elif backup.keep <= backup.every:
        message = f"{name}.keep {keep} isn't longer than every {every}; at times there would be no backup"
        yield Finding((*where, "keep"), message, "write 30d", also=((*where, "every"),))
    elif backup.drill < backup.every:
        message = f"{name}.drill {drill} is shorter than every {every}; drills would test the same backup repeatedly"
        yield Finding(_drill_or(where, backup, "every"), message, f"write {every} or more")
    elif backup.drill >= backup.keep:
        message = f"{name}.keep {keep} isn't longer than drill {drill}; at times no existing backup would be tested"
        yield Finding(
            (*where, "keep"), message, f"write keep: {format_duration_ms(2 * backup.drill)}, or a shorter drill"
        )


def _drill_or(where: Where, backup: Backup, other: str) -> Where:
    """Return the place to show: `drill`, or `other` if drill has its default."""
    return (*where, "drill" if "drill" in backup.model_fields_set else other)


def _in_bucket(role: RoleName, backup: Backup, cloud: Cloud) -> Iterator[Finding]:
    most = LONGEST_DAYS.get(cloud)
    if most and backup.keep > most * _DAY_MS:
        message = (
            f"etcd.{role}.backup.keep {format_duration_ms(backup.keep)} is longer than the {most}d for which buckets of "
            f"{cloud.value} can restore deleted objects; backups could be deleted early for good"
        )
        yield Finding(("etcd", role, "backup", "keep"), message, f"write {most}d")
