"""SCH-001 and SCH-002: more balloons than a pool has hosts, and gangs on a release without them."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.releases import POD_GROUPS, is_version, minor


def balloons(subject: Subject) -> Iterator[Finding]:
    """A pool has no more balloons than hosts: each takes a whole host, and the rest would stay pending."""
    for name, pool in subject.spec.pools.items():
        if pool.site is None and pool.balloons > pool.max:
            where: Where = ("pools", name, "balloons")
            message = f"{show(where)} is {pool.balloons}, but the pool has at most {pool.max} hosts"
            yield Finding(where, message, f"write {pool.max} or less", also=(("pools", name, "max"),))


def gangs(subject: Subject) -> Iterator[Finding]:
    """Gangs need a Kubernetes release with PodGroups."""
    version = subject.spec.kubernetes.version
    if subject.spec.scheduling.gangs and is_version(version) and minor(version) not in POD_GROUPS:
        where: Where = ("scheduling", "gangs")
        message = f"{show(where)} is true, but Kubernetes {version} can't place PodGroups as a whole"
        hint = f"use Kubernetes {next(iter(POD_GROUPS))}, or remove it"
        yield Finding(where, message, hint, also=(("kubernetes", "version"),))


RULES: tuple[tuple[str, Rule], ...] = (("SCH-001", balloons), ("SCH-002", gangs))
