"""MET-001 and MET-003: prices of an hour, and what a ledger needs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show


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


RULES: tuple[tuple[str, Rule], ...] = (
    ("MET-001", prices),
    ("MET-003", needs),
)
