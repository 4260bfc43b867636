"""ASC-001 to ASC-005: an autoscaler with nothing to do, or with times and shares that contradict themselves."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.autoscaler import Autoscaler
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.fields import did_you_mean
from cluster.quantities import format_duration_ms, share_of

_PLACE: Where = ("autoscaler",)


def pools(subject: Subject) -> Iterator[Finding]:
    """Names of pools in the region that can grow."""
    settings = subject.spec.autoscaler
    if settings is None:
        return
    for index, name in enumerate(settings.pools or ()):
        where: Where = (*_PLACE, "pools", index)
        yield from _in_the_region(subject, where, name)
        pool = subject.spec.pools.get(name)
        if pool and pool.site is None and pool.max <= pool.min:
            message = (
                f"{show(where)}: pool {name} has min {pool.min} and max {pool.max}, so it can neither grow nor shrink"
            )
            yield Finding(where, message, "raise its max, or take it off the list", also=(("pools", name, "max"),))
    for key in ("prices", "interruptions"):
        for name in getattr(settings, key):
            yield from _in_the_region(subject, (*_PLACE, key, name), name)


def _in_the_region(subject: Subject, where: Where, name: str) -> Iterator[Finding]:
    found = subject.spec.pools.get(name)
    if found is None:
        near = did_you_mean(name, subject.spec.pools)
        yield Finding(where, f"{show(where)}: there is no pool {name}", f"name one of pools{near}")
    elif found.site is not None:
        message = f"{show(where)}: pool {name} is at site {found.site}; machines there are bought by people"
        yield Finding(where, message, "name a pool in the region")


def something(subject: Subject) -> Iterator[Finding]:
    """An autoscaler of nothing."""
    settings, spec = subject.spec.autoscaler, subject.spec
    if settings is None:
        return
    able = [name for name, pool in spec.pools.items() if pool.site is None and pool.max > pool.min]
    if settings.pools == () or (settings.pools is None and not able):
        message = "autoscaler has no pool to grow: none in the region has a max above its min"
        yield Finding(_PLACE, message, "raise max of a pool in the region, or remove autoscaler")


def times(subject: Subject) -> Iterator[Finding]:
    """What must not last longer than what."""
    settings = subject.spec.autoscaler
    if settings is None:
        return
    yield from _above(settings, "backoff", "backoff_most", "it could not double up to less")
    yield from _above(settings, "spot_timeout", "boot_timeout", "spot machines are given up first")
    for kind in ("cpu", "gpu"):
        idle = getattr(settings.idle, kind)
        if idle < settings.interval:
            where: Where = (*_PLACE, "idle", kind)
            shown = format_duration_ms(settings.interval)
            message = (
                f"{show(where)} {format_duration_ms(idle)} is shorter than interval {shown}, from one look to the next"
            )
            yield Finding(where, message, f"write {shown} or more")
    if settings.interval < 1000:
        where = (*_PLACE, "interval")
        yield Finding(where, f"{show(where)} {format_duration_ms(settings.interval)} is under a second", "write 15s")


def _above(settings: Autoscaler, lower: str, upper: str, why: str) -> Iterator[Finding]:
    low, high = getattr(settings, lower), getattr(settings, upper)
    if low > high:
        where = (*_PLACE, lower)
        message = f"{show(where)} {format_duration_ms(low)} is longer than {upper} {format_duration_ms(high)}; {why}"
        yield Finding(where, message, f"write {format_duration_ms(high)} or less", also=((*_PLACE, upper),))


def shares(subject: Subject) -> Iterator[Finding]:
    """A step that the brake on all removals would always refuse."""
    settings, spec = subject.spec.autoscaler, subject.spec
    if settings is None:
        return
    step, most = settings.removed_step, spec.repair.max_removed
    where = (*_PLACE, "removed_step")
    nodes = sum(len(hosts) for hosts in subject.cluster.hosts.values()) + spec.cloud_workers
    if share_of(step, nodes) > share_of(most, nodes):
        message = f"{show(where)} {step} is above repair.max_removed {most}: such a step would be refused as a whole"
        yield Finding(where, message, f"write {most} or less")


def money(subject: Subject) -> Iterator[Finding]:
    """Prices are above nothing; only spot machines are taken away."""
    settings, spec = subject.spec.autoscaler, subject.spec
    if settings is None:
        return
    for name, price in settings.prices.items():
        where: Where = (*_PLACE, "prices", name)
        if price <= 0:
            yield Finding(where, f"{show(where)} {price:g} is no price", "write US dollars an hour: 12.5")
    for name, often in settings.interruptions.items():
        where = (*_PLACE, "interruptions", name)
        pool = spec.pools.get(name)
        if often < 0 or often > 60:
            yield Finding(where, f"{show(where)} {often:g} is no number of interruptions an hour", "write 0.05")
        elif pool and pool.site is None and not pool.spot:
            yield Finding(where, f"{show(where)}: pool {name} is not spot, and nobody takes its machines", "remove it")


RULES: tuple[tuple[str, Rule], ...] = (
    ("ASC-001", pools),
    ("ASC-002", something),
    ("ASC-003", times),
    ("ASC-004", shares),
    ("ASC-005", money),
)
