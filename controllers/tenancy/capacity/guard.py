"""Which changes of allocations are not believed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.tenancy import Tenancy
from controllers.tenancy.capacity.hosts import Host
from controllers.tenancy.capacity.plan import Plan
from controllers.tenancy.sync.guard import reaches


def refusals(plan: Plan, hosts: Sequence[Host], settings: Tenancy, *, accept_loss: bool = False) -> tuple[str, ...]:
    """Why no host may change hands; nothing where they may. accept_loss: somebody says that it is meant so."""
    held = [host for host in hosts if host.holder]
    lost = [move for move in plan.moves if move.host.holder and move.after != move.host.holder]
    if accept_loss or not held or not reaches(len(lost), len(held), settings.refuse_loss):
        return ()
    told = (
        f"{len(lost)} of {len(held)} hosts that are teams' would be taken from them; tenancy.refuse_loss believes no loss of "
        f"{settings.refuse_loss}. If the allocations are meant so: --accept-loss"
    )
    return (told,)
