"""What of a directory is not believed. No I/O."""

from __future__ import annotations

from cluster.tenancy import Tenancy
from controllers.tenancy.directory import Kind, Roster
from controllers.tenancy.sync.plan import leaving
from controllers.tenancy.sync.seen import Seen, Sizes


def sizes(roster: Roster) -> Sizes:
    """How much a directory holds."""
    return Sizes(len(roster.active), len(roster.teams), roster.memberships)


def refusals(roster: Roster, seen: Seen, settings: Tenancy, *, accept_loss: bool = False) -> tuple[str, ...]:
    """Why nothing may be changed by this directory; nothing where it may. accept_loss: somebody says that they have left."""
    if not roster.active:
        return ("the directory holds nobody; if that were so, nobody would be left to be asked",)
    return () if accept_loss else _losses(roster, seen, settings)


def _losses(roster: Roster, seen: Seen, settings: Tenancy) -> tuple[str, ...]:
    """Compared with the last sync, and with namespaces in use: a directory of others in equal number lost everybody too."""
    now, last = sizes(roster), seen.last or Sizes(0, 0, 0)
    going = [each.tenant.kind for each in leaving(roster, seen.spaces, settings) if each.tenant]
    active = [tenant.kind for tenant in seen.active()]
    compared = (
        ("people", max(last.people, active.count(Kind.PERSON)), now.people, going.count(Kind.PERSON)),
        ("teams", max(last.teams, active.count(Kind.TEAM)), now.teams, going.count(Kind.TEAM)),
        ("memberships", last.memberships, now.memberships, 0),
    )
    since = f" since {last.since}" if last.since else ""
    found = []
    for what, before, left, frozen in compared:
        lost = max(before - left, frozen)
        if before and reaches(lost, before, settings.refuse_loss):
            found.append(
                f"{lost} of {before} {what} have gone{since}; tenancy.refuse_loss believes no loss of "
                f"{settings.refuse_loss}. If they have left: --accept-loss"
            )
    return tuple(found)


def reaches(lost: int, before: int, share: str) -> bool:
    """Whether so many of so many are a `Share` or more."""
    number = int(share.rstrip("%"))
    return lost * 100 >= number * before if share.endswith("%") else lost >= number
