"""SCH-001 and SCH-002: balloons that a pool has no room for, and gangs that a release does not know."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.releases import POD_GROUPS, is_version, minor


def balloons(subject: Subject) -> Iterator[Finding]:
    """Each holds a host of its own, so more of them than hosts wait for ever, and an autoscaler asks for ever."""
    for name, pool in subject.spec.pools.items():
        if pool.site is None and pool.balloons > pool.max:
            where: Where = ("pools", name, "balloons")
            message = f"{show(where)} is {pool.balloons}, and the pool has {pool.max} hosts at most"
            yield Finding(where, message, f"write {pool.max} or less", also=(("pools", name, "max"),))


def gangs(subject: Subject) -> Iterator[Finding]:
    """Kubernetes has PodGroups from a release on."""
    version = subject.spec.kubernetes.version
    if subject.spec.scheduling.gangs and is_version(version) and minor(version) not in POD_GROUPS:
        where: Where = ("scheduling", "gangs")
        message = f"{show(where)} is true, and Kubernetes {version} has no PodGroups that are placed as a whole"
        hint = f"use {next(iter(POD_GROUPS))}, or remove it"
        yield Finding(where, message, hint, also=(("kubernetes", "version"),))


RULES: tuple[tuple[str, Rule], ...] = (("SCH-001", balloons), ("SCH-002", gangs))
