"""RPR-001 to RPR-004: repairs that would never begin, never end, or never stop."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import preflight
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.quantities import format_duration_ms, share_of
from cluster.spec import Cluster

_WELL = {("Ready", "True"), (preflight.CONDITION, "True")}


def conditions(subject: Subject) -> Iterator[Finding]:
    """Twice the same, or one that well nodes have."""
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(subject.spec.repair.conditions):
        where: Where = ("repair", "conditions", index)
        pair = (each.type, each.status)
        if pair in seen:
            yield Finding(where, f"{show(where)} is {each.type} {each.status} again", "keep one of them")
        if pair in _WELL:
            message = f"{show(where)} calls a node broken that is {each.type}: all of them would be repaired"
            yield Finding((*where, "status"), message, 'write "False" or "Unknown"')
        seen.add(pair)


def brakes(subject: Subject) -> Iterator[Finding]:
    """A share of 100 % never stops anything; one of few machines may be none."""
    spec, given = subject.spec, subject.spec.repair.model_fields_set
    places: list[tuple[Where, str | None]] = [
        (("repair", key), getattr(spec.repair, key)) for key in ("max_unhealthy", "max_removed") if key in given
    ]
    places += [(("pools", name, "max_unhealthy"), pool.max_unhealthy) for name, pool in spec.pools.items()]
    for where, share in places:
        if share == "100%":
            yield Finding(where, f"{show(where)} 100% never stops a repair", "write less, or leave it out")
    for name, pool in spec.pools.items():
        most = _size(subject.cluster, name)
        if pool.max_unhealthy and most and not share_of(pool.max_unhealthy, most, least=0):
            where = ("pools", name, "max_unhealthy")
            message = f"{show(where)} {pool.max_unhealthy} of {most} is no node, so none of the pool is ever repaired"
            yield Finding(where, message, "write a number: 1", severity="warning")


def times(subject: Subject) -> Iterator[Finding]:
    """What must last longer than what."""
    repair = subject.spec.repair
    longest = max((each.after for each in repair.conditions), default=0)
    if repair.min_healthy_period <= longest:
        message = (
            f"repair.min_healthy_period {format_duration_ms(repair.min_healthy_period)} isn't longer than the "
            f"{format_duration_ms(longest)} that a condition must last, so no repair counts as one that did not help"
        )
        yield Finding(("repair", "min_healthy_period"), message, f"write more than {format_duration_ms(longest)}")
    if repair.window < repair.node_startup:
        message = (
            f"repair.window {format_duration_ms(repair.window)} is shorter than node_startup "
            f"{format_duration_ms(repair.node_startup)}: nodes that are still on their way back would not count"
        )
        yield Finding(("repair", "window"), message, f"write {format_duration_ms(repair.node_startup)} at least")


def installing(subject: Subject) -> Iterator[Finding]:
    """Only a BMC boots an installer."""
    sites = subject.spec.sites.values()
    if subject.spec.repair.reinstall and not any(site.provisioning and site.provisioning.bmc for site in sites):
        message = "repair.reinstall is true, and no site has provisioning.bmc, by which machines are installed"
        yield Finding(("repair", "reinstall"), message, "remove it, or give a site provisioning")
    for name, site in subject.spec.sites.items():
        own = site.provisioning
        if subject.spec.repair.reinstall and own and own.bmc and not own.first_stage:
            message = (
                f"repair.reinstall is true, and machines of {name} boot what whoever is on their network answers; repair "
                "refuses to install them"
            )
            hint = "write provisioning.first_stage, once docs/how-to/provisioning.md is done; until then a repair ends as a ticket"
            where: Where = ("sites", name, "provisioning")
            yield Finding(("repair", "reinstall"), message, hint, severity="warning", also=(where,))


def _size(cluster: Cluster, pool: str) -> int:
    """How many nodes the pool has at most."""
    return len(cluster.hosts.get(pool, ())) or cluster.spec.pools[pool].max


RULES: tuple[tuple[str, Rule], ...] = (
    ("RPR-001", conditions),
    ("RPR-002", brakes),
    ("RPR-003", times),
    ("RPR-004", installing),
)
