"""Which losses in a directory a sync refuses to apply. No I/O."""

from __future__ import annotations

from cluster.tenancy import Tenancy
from controllers.tenancy.directory import Roster, TenantKind
from controllers.tenancy.sync.plan import leaving
from controllers.tenancy.sync.state import Sizes, TenancyState


def sizes(roster: Roster) -> Sizes:
    """Return the size of a directory."""
    return Sizes(len(roster.active), len(roster.teams), roster.memberships)


def refusals(roster: Roster, state: TenancyState, settings: Tenancy, *, accept_loss: bool = False) -> tuple[str, ...]:
    """Return why this directory may change nothing; empty if it may. accept_loss: an operator confirms that the missing ones have left."""
    if not roster.active:
        return ("the directory has no people; this is never applied, not even with --accept-loss",)
    return () if accept_loss else _losses(roster, state, settings)


def _losses(roster: Roster, state: TenancyState, settings: Tenancy) -> tuple[str, ...]:
    """Compare with the last sync and with namespaces in use: a directory with as many, but different, people has lost everybody too."""
    now, last = sizes(roster), state.last or Sizes(0, 0, 0)
    leaving_kinds = [each.tenant.kind for each in leaving(roster, state.spaces, settings) if each.tenant]
    active = [tenant.kind for tenant in state.active()]
    compared = (
        (
            "people",
            max(last.people, active.count(TenantKind.PERSON)),
            now.people,
            leaving_kinds.count(TenantKind.PERSON),
        ),
        ("teams", max(last.teams, active.count(TenantKind.TEAM)), now.teams, leaving_kinds.count(TenantKind.TEAM)),
        ("memberships", last.memberships, now.memberships, 0),
    )
    since = f" since {last.since}" if last.since else ""
    reasons = []
    for what, before, left, frozen in compared:
        lost = max(before - left, frozen)
        if before and reaches(lost, before, settings.refuse_loss):
            reasons.append(
                f"{lost} of {before} {what} are missing{since}; tenancy.refuse_loss refuses a loss of "
                f"{settings.refuse_loss} or more. If they have left, run this with --accept-loss"
            )
    return tuple(reasons)


def reaches(lost: int, before: int, share: str) -> bool:
    """Whether `lost` of `before` reaches a `Share`: a number, or a percentage such as 10%."""
    number = int(share.rstrip("%"))
    return lost * 100 >= number * before if share.endswith("%") else lost >= number
