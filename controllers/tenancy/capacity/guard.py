"""Which losses of teams' hosts a run refuses to apply. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.tenancy import Tenancy
from controllers.tenancy.capacity.hosts import TeamHost
from controllers.tenancy.capacity.plan import AllocationPlan
from controllers.tenancy.sync.guard import reaches


def refusals(
    plan: AllocationPlan, hosts: Sequence[TeamHost], settings: Tenancy, *, accept_loss: bool = False
) -> tuple[str, ...]:
    """Return why no host may be moved; empty if hosts may. accept_loss: an operator confirms that the loss is intended."""
    held = [host for host in hosts if host.holder]
    lost = [move for move in plan.moves if move.host.holder and move.after != move.host.holder]
    if accept_loss or not held or not reaches(len(lost), len(held), settings.refuse_loss):
        return ()
    reason = (
        f"{len(lost)} of the teams' {len(held)} hosts would be taken from them; tenancy.refuse_loss refuses a loss of "
        f"{settings.refuse_loss} or more. If this is intended, run this with --accept-loss"
    )
    return (reason,)
