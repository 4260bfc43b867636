"""ASC-001 to ASC-005: an autoscaler with nothing to do, or with times and shares that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.autoscaler import Autoscaler
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.fields import did_you_mean
from cluster.quantities import format_duration_ms, share_of

_PLACE: Where = ("autoscaler",)


def pools(subject: Subject) -> Iterator[Finding]:
    """The autoscaler names pools in the region, and those on its list can grow."""
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
            yield Finding(where, message, "raise its max, or remove it from the list", also=(("pools", name, "max"),))
    for key in ("prices", "interruptions"):
        for name in getattr(settings, key):
            yield from _in_the_region(subject, (*_PLACE, key, name), name)


def _in_the_region(subject: Subject, where: Where, name: str) -> Iterator[Finding]:
    pool = subject.spec.pools.get(name)
    if pool is None:
        near = did_you_mean(name, subject.spec.pools)
        yield Finding(where, f"{show(where)}: there is no pool {name}{near}", "name a pool in the region")
    elif pool.site is not None:
        message = f"{show(where)}: pool {name} is at site {pool.site}, where no machines can be added automatically"
        yield Finding(where, message, "name a pool in the region")


def pool_that_can_grow(subject: Subject) -> Iterator[Finding]:
    """The autoscaler has at least one pool that can grow."""
    settings, spec = subject.spec.autoscaler, subject.spec
    if settings is None:
        return
    growing = [name for name, pool in spec.pools.items() if pool.site is None and pool.max > pool.min]
    if settings.pools == () or (settings.pools is None and not growing):
        message = "autoscaler has no pool to grow: none in the region has a max above its min"
        yield Finding(_PLACE, message, "raise max of a pool in the region, or remove autoscaler")


def times(subject: Subject) -> Iterator[Finding]:
    """Compare times that must not be longer than others."""
    settings = subject.spec.autoscaler
    if settings is None:
        return
    yield from _above(settings, "backoff", "backoff_most", "it doubles from the first up to the second")
    yield from _above(settings, "spot_timeout", "boot_timeout", "the autoscaler gives up on spot machines first")
    for kind in ("cpu", "gpu"):
        idle = getattr(settings.idle, kind)
        if idle < settings.interval:
            where: Where = (*_PLACE, "idle", kind)
            shown = format_duration_ms(settings.interval)
            message = f"{show(where)} {format_duration_ms(idle)} is shorter than interval {shown}, the time between two checks"
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
    """A step of removals must pass the brake on all removals."""
    settings, spec = subject.spec.autoscaler, subject.spec
    if settings is None:
        return
    step, most = settings.removed_step, spec.repair.max_removed
    where = (*_PLACE, "removed_step")
    nodes = sum(len(hosts) for hosts in subject.cluster.hosts.values()) + spec.cloud_workers
    if share_of(step, nodes) > share_of(most, nodes):
        message = f"{show(where)} {step} is above repair.max_removed {most}, so every full step would be refused"
        yield Finding(where, message, f"write {most} or less")


def prices(subject: Subject) -> Iterator[Finding]:
    """Prices are above 0, and only spot machines are interrupted."""
    settings, spec = subject.spec.autoscaler, subject.spec
    if settings is None:
        return
    for name, price in settings.prices.items():
        where: Where = (*_PLACE, "prices", name)
        if price <= 0:
            yield Finding(where, f"{show(where)} {price:g} isn't a price", "write US dollars an hour, for example 12.5")
    for name, rate in settings.interruptions.items():
        where = (*_PLACE, "interruptions", name)
        pool = spec.pools.get(name)
        if rate < 0 or rate > 60:
            yield Finding(
                where, f"{show(where)} {rate:g} isn't a number of interruptions an hour (0 to 60)", "write 0.05"
            )
        elif pool and pool.site is None and not pool.spot:
            yield Finding(
                where,
                f"{show(where)}: pool {name} isn't spot, so the cloud doesn't interrupt its machines",
                "remove it",
            )


RULES: tuple[tuple[str, Rule], ...] = (
    ("ASC-001", pools),
    ("ASC-002", pool_that_can_grow),
    ("ASC-003", times),
    ("ASC-004", shares),
    ("ASC-005", prices),
)
