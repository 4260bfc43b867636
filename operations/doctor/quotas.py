"""The arithmetic of a quota: what the plan needs against what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cluster.needs import Use
from operations.doctor.model import Answer, ok, unknown, wrong

Raise = Callable[[int], Sequence[str]]
"""Returns the commands that ask for a quota of this size."""


@dataclass(frozen=True)
class Quota:
    """A limit and how much of it is used. name: as the cloud names it. place: where it holds."""

    name: str
    unit: str
    place: str
    limit: float
    used: float


@dataclass(frozen=True)
class Need:
    """What one use takes of a quota. what: "" if the quota's name says it. each: units for one machine."""

    what: str
    least: int
    most: int
    each: int


def needs_of(used: Iterable[Use], each: Callable[[Use], int]) -> list[Need]:
    return [Need(f"{use.what} ({use.machine})", use.least, use.most, each(use)) for use in used]


def compared(quota: Quota, needs: Sequence[Need], raise_: Raise) -> Answer:
    """Compare: wrong if the plan's least or most does not fit.

    A pool that cannot grow to its `max` stops growing silently, so its most counts too (as in CLD-005).
    """
    least = sum(need.least * need.each for need in needs)
    most = sum(need.most * need.each for need in needs)
    left = quota.limit - quota.used
    finding = f"{left:g} left of {quota.limit:g} {quota.unit} in {quota.place}"
    to = f" at the start, {most:,} at most" if most != least else ""
    needed = f"{least:,} {quota.unit}{to}{_parts(needs)}"
    if most <= left:
        return ok(finding, needed, about=quota.name)
    short = "too few to start" if least > left else "enough to start, too few to grow"
    commands = raise_(int(quota.used) + most)
    return wrong(f"{finding}: {short}", *commands, needed=needed, about=quota.name)


def not_known(name: str, needs: Sequence[Need], why: str, *mend: str) -> Answer:
    """Return the answer for a quota whose limit cannot be read."""
    most = sum(need.most * need.each for need in needs)
    return unknown(why, *mend, needed=f"{most:,} at most{_parts(needs)}", about=name)


def _parts(needs: Sequence[Need]) -> str:
    parts = ", ".join(_part(need) for need in needs if need.what)
    return f": {parts}" if parts else ""


def _part(need: Need) -> str:
    count = f"{need.least}" if need.least == need.most else f"{need.least} to {need.most}"
    return f"{need.what} {count} × {need.each}" if need.each != 1 else f"{need.what} {count}"
