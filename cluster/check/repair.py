"""RPR-001 to RPR-004: repairs that would never start, never finish, or never stop."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import preflight
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.quantities import format_duration_ms, share_of
from cluster.spec import Cluster

_HEALTHY = {("Ready", "True"), (preflight.CONDITION, "True")}


def conditions(subject: Subject) -> Iterator[Finding]:
    """No condition is listed twice, and healthy nodes have none of them."""
    pairs: set[tuple[str, str]] = set()
    for index, condition in enumerate(subject.spec.repair.conditions):
        where: Where = ("repair", "conditions", index)
        pair = (condition.type, condition.status)
        if pair in pairs:
            yield Finding(where, f"{show(where)} repeats {condition.type} {condition.status}", "keep one of them")
        if pair in _HEALTHY:
            message = f"{show(where)} treats a node as broken when it is {condition.type}, so all healthy nodes would be repaired"
            yield Finding((*where, "status"), message, 'write "False" or "Unknown"')
        pairs.add(pair)


def brakes(subject: Subject) -> Iterator[Finding]:
    """Brakes can take effect, and still allow some repairs. A share of a small pool may round down to no node."""
    spec, written = subject.spec, subject.spec.repair.model_fields_set
    places: list[tuple[Where, str | None]] = [
        (("repair", key), getattr(spec.repair, key)) for key in ("max_unhealthy", "max_removed") if key in written
    ]
    places += [(("pools", name, "max_unhealthy"), pool.max_unhealthy) for name, pool in spec.pools.items()]
    for where, share in places:
        if share == "100%":
            yield Finding(where, f"{show(where)} 100% never stops a repair", "write less, or leave it out")
    for name, pool in spec.pools.items():
        most = _size(subject.cluster, name)
        if pool.max_unhealthy and most and not share_of(pool.max_unhealthy, most, least=0):
            where = ("pools", name, "max_unhealthy")
            message = f"{show(where)} {pool.max_unhealthy} of {most} nodes is less than one node, so no node of the pool is ever repaired"
            yield Finding(where, message, "write a number: 1", severity="warning")


def times(subject: Subject) -> Iterator[Finding]:
    """Compare times that must be longer than others."""
    repair = subject.spec.repair
    longest = max((condition.after for condition in repair.conditions), default=0)
    if repair.min_healthy_period <= longest:
        message = (
            f"repair.min_healthy_period {format_duration_ms(repair.min_healthy_period)} isn't longer than the "
            f"{format_duration_ms(longest)} that a condition must last, so no repair would count as failed"
        )
        yield Finding(("repair", "min_healthy_period"), message, f"write more than {format_duration_ms(longest)}")
    if repair.window < repair.node_startup:
        message = (
            f"repair.window {format_duration_ms(repair.window)} is shorter than node_startup "
            f"{format_duration_ms(repair.node_startup)}: nodes that are still starting wouldn't count"
        )
        yield Finding(("repair", "window"), message, f"write at least {format_duration_ms(repair.node_startup)}")


def installing(subject: Subject) -> Iterator[Finding]:
    """Reinstalling needs a BMC, which boots the installer, and a first stage that can't be replaced on the way."""
    sites = subject.spec.sites.values()
    if subject.spec.repair.reinstall and not any(site.provisioning and site.provisioning.bmc for site in sites):
        message = "repair.reinstall is true, but no site has provisioning.bmc, which is needed to install machines"
        yield Finding(("repair", "reinstall"), message, "remove it, or add provisioning.bmc to a site")
    for name, site in subject.spec.sites.items():
        own = site.provisioning
        if subject.spec.repair.reinstall and own and own.bmc and not own.first_stage:
            message = (
                f"repair.reinstall is true, but machines of {name} boot whatever anybody on their network sends them, so repair "
                "refuses to install them"
            )
            hint = "follow docs/how-to/provisioning.md, then write provisioning.first_stage; until then a repair ends in a ticket"
            where: Where = ("sites", name, "provisioning")
            yield Finding(("repair", "reinstall"), message, hint, severity="warning", also=(where,))


def _size(cluster: Cluster, pool: str) -> int:
    """Return the largest number of nodes that the pool can have."""
    return len(cluster.hosts.get(pool, ())) or cluster.spec.pools[pool].max


RULES: tuple[tuple[str, Rule], ...] = (
    ("RPR-001", conditions),
    ("RPR-002", brakes),
    ("RPR-003", times),
    ("RPR-004", installing),
)
