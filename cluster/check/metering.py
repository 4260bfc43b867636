"""MET-001 and MET-003 to MET-005: prices of an hour, what a ledger needs, how often it counts, and what it knows of energy."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.controllers import home
from cluster.document import Where, show
from cluster.pools import Pool
from cluster.provisioning import Bmcs
from cluster.quantities import DAY_MS, format_duration_ms

_MINUTE_MS = 60_000


def prices(subject: Subject) -> Iterator[Finding]:
    """Prices of sites' machines are above 0: a ledger with others would be wrong without anybody noticing."""
    for name, pool in subject.spec.pools.items():
        where: Where = ("pools", name, "price_hour")
        if pool.price_hour is None:
            continue
        if not math.isfinite(pool.price_hour) or pool.price_hour <= 0:
            message = f"{show(where)} {pool.price_hour:g} isn't a price"
            yield Finding(
                where, message, "write US dollars an hour, for example 21.5, or leave it out if it is unknown"
            )
        elif pool.site is None:
            message = f"pools.{name} is in the region and has price_hour, which is only for machines of your own"
            hint = f"write it as autoscaler.prices: {{{name}: {pool.price_hour:g}}}, or leave it out for the list price, where one is known"
            yield Finding(where, message, hint, also=(("pools", name, "site"),))


def needs(subject: Subject) -> Iterator[Finding]:
    """A ledger needs controllers, and in a cloud a key: its pods have no login there."""
    where: Where = ("metering",)
    if subject.spec.metering is None:
        return
    if subject.spec.tenancy is None:
        message = "metering needs tenancy: without it there are no teams, and no controllers that keep a ledger"
        yield Finding(where, message, "add tenancy (docs/how-to/teams.md), or remove metering", also=(("tenancy",),))
    if subject.spec.metering.key is None and not subject.cluster.is_lab:
        message = "metering has no key: in a cloud, the controller's pods have no login for the bucket"
        hint = "store one with ./menagerie secret <cluster> ledger, and write key: {secret: ledger}"
        yield Finding(where, message, hint, also=((*where, "key"),))


def rounds(subject: Subject) -> Iterator[Finding]:
    """The running day is counted between rounds of a minute, and days end."""
    metering = subject.spec.metering
    if metering and not _MINUTE_MS <= metering.running_every <= DAY_MS:
        where: Where = ("metering", "running_every")
        given = format_duration_ms(metering.running_every)
        yield Finding(where, f"{show(where)} {given} isn't between 1m and 1d", "leave it out for 1h")


def energy(subject: Subject) -> Iterator[Finding]:
    """What a ledger of energy is made of: watts that are possible, prices above 0, and logins that may only read."""
    for name, pool in subject.spec.pools.items():
        yield from _watts(name, pool)
    for name, site in subject.spec.sites.items():
        where: Where = ("sites", name, "price_kwh")
        if site.price_kwh is not None and not (math.isfinite(site.price_kwh) and site.price_kwh > 0):
            message = f"{show(where)} {site.price_kwh:g} isn't a price"
            yield Finding(
                where, message, "write US dollars of a kWh, for example 0.14, or leave it out if it is unknown"
            )
        yield from _reader(subject, name, site.provisioning.bmc if site.provisioning else None)


def _watts(name: str, pool: Pool) -> Iterator[Finding]:
    idle, busy = pool.watts_idle, pool.watts_busy
    where: Where = ("pools", name, "watts_idle" if idle is not None else "watts_busy")
    if idle is None and busy is None:
        return
    if pool.site is None:
        message = f"pools.{name} is in the region and has {where[-1]}, which is only for machines of your own"
        yield Finding(where, message, "leave it out: no cloud says what its machines draw")
    elif idle is None or busy is None:
        other = "watts_busy" if busy is None else "watts_idle"
        yield Finding(where, f"{show(where)} is given without {other}", f"add {other}: an estimate needs both")
    elif idle > busy:
        message = f"{show(where)} {idle} is more than watts_busy {busy}"
        yield Finding(where, message, "write the watts of an idle machine, and those of one that pods use whole")


def _reader(subject: Subject, name: str, bmcs: Bmcs | None) -> Iterator[Finding]:
    if bmcs is None or bmcs.reader is None:
        return
    where: Where = ("sites", name, "provisioning", "bmc", "reader")
    if bmcs.reader.secret == bmcs.credentials.secret:
        message = f"{show(where)} is the login that may turn machines off, and pods would have it"
        hint = f"create a user with Redfish's role ReadOnly, and name another secret: {{secret: bmc-reader-{name}}}"
        yield Finding(where, message, hint, also=((*where[:-1], "credentials"),))
    pool = home(subject.cluster)
    if pool and subject.spec.pools[pool].site is None:
        message = f"{show(where)} is read by controllers in pool {pool}, in the region, which reach no BMC"
        yield Finding(where, message, "name a pool at a site: tenancy.controllers", also=(("pools", pool),))
    if subject.spec.metering is None:
        yield Finding(
            where,
            f"{show(where)} is given without metering",
            "add metering, or remove reader: only the ledger reads power",
        )


RULES: tuple[tuple[str, Rule], ...] = (
    ("MET-001", prices),
    ("MET-003", needs),
    ("MET-004", rounds),
    ("MET-005", energy),
)
