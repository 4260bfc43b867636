"""TEN-012 to TEN-015: allocations that can't be met, and times for borrowing that can't be kept.

Only the directory knows whether a team exists; `tenancy sync --hosts` reports teams that don't.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cluster.allocations import TEAM_KEY, Allocation
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.tenancy import Tenancy

_PLACE: Where = ("tenancy", "allocations")
_BORROWING: Where = ("tenancy", "borrowing")


def known_pools(subject: Subject) -> Iterator[Finding]:
    """Each allocation names an existing pool, and a team has at most one allocation per pool."""
    first: dict[tuple[str, str], int] = {}
    pools = ", ".join(sorted(subject.spec.pools)) or "none"
    for index, allocation in enumerate(_allocations(subject.spec.tenancy)):
        where = (*_PLACE, index)
        if allocation.pool not in subject.spec.pools:
            yield Finding(
                (*where, "pool"), f"{allocation.pool} isn't a pool of {subject.spec.name}", f"its pools: {pools}"
            )
        earlier = first.setdefault((allocation.pool, allocation.team), index)
        if earlier != index:
            message = f"{allocation.team} already has an allocation of {allocation.pool}"
            hint = "write one allocation with all its hosts"
            yield Finding((*where, "team"), message, hint, also=((*_PLACE, earlier, "team"),))


def controllers_pool(subject: Subject) -> Iterator[Finding]:
    """The pool for controllers exists and can have a host."""
    tenancy, pools = subject.spec.tenancy, subject.spec.pools
    if tenancy is None or tenancy.controllers is None:
        return
    where: Where = ("tenancy", "controllers")
    pool = pools.get(tenancy.controllers)
    if pool is None:
        hint = f"its pools: {', '.join(sorted(pools)) or 'none'}"
        yield Finding(where, f"{tenancy.controllers} isn't a pool of {subject.spec.name}", hint)
    elif not pool.site and not pool.max:
        message = f"{tenancy.controllers} never has a machine, so no controller would run"
        yield Finding(
            where,
            message,
            f"give pools.{tenancy.controllers} a max, or name another pool",
            also=(("pools", tenancy.controllers),),
        )


def room(subject: Subject) -> Iterator[Finding]:
    """A pool at a site has the machines in its hosts file; a pool in the region can grow to its max."""
    by_pool: dict[str, list[int]] = defaultdict(list)
    allocations = _allocations(subject.spec.tenancy)
    for index, allocation in enumerate(allocations):
        by_pool[allocation.pool].append(index)
    for name, indices in by_pool.items():
        pool = subject.spec.pools.get(name)
        if pool is None:
            continue
        available = len(subject.cluster.hosts.get(name, ())) if pool.site else pool.max
        allocated = sum(allocations[index].hosts for index in indices)
        if allocated > available:
            last, *others = ((*_PLACE, index, "hosts") for index in reversed(indices))
            verb = "grows to" if pool.site is None else "has"
            message = f"allocations of {name} add up to {allocated} hosts, but it {verb} {available}"
            yield Finding(
                last,
                message,
                f"reduce them by {allocated - available}, or give the pool more hosts",
                also=tuple(others),
            )


def own_key(subject: Subject) -> Iterator[Finding]:
    """A pool may not set the team label or taint: kubelets register with it, and the next run would remove it again."""
    for name in sorted(
        {allocation.pool for allocation in _allocations(subject.spec.tenancy)} & subject.spec.pools.keys()
    ):
        pool, place = subject.spec.pools[name], ("pools", name)
        hint = "remove it; allocations set it"
        if TEAM_KEY in pool.labels:
            where: Where = (*place, "labels", TEAM_KEY)
            yield Finding(where, f"label {TEAM_KEY} is reserved for allocations, which set it on their hosts", hint)
        for index, taint in enumerate(pool.taints):
            if taint.key == TEAM_KEY:
                where = (*place, "taints", index, "key")
                yield Finding(where, f"taint {TEAM_KEY} is reserved for allocations, which set it on their hosts", hint)


def times(subject: Subject) -> Iterator[Finding]:
    """Kubernetes counts a pod's grace period in whole seconds."""
    tenancy = subject.spec.tenancy
    if tenancy is None:
        return
    own = tenancy.borrowing
    for key, value in (("checkpoint", own.checkpoint), ("most", own.most)):
        if value % 1000 or not value:
            where = (*_BORROWING, key)
            yield Finding(where, f"{show(where)} {value}ms isn't a whole number of seconds above 0", "write 2m")
    if own.checkpoint > own.most:
        where = (*_BORROWING, "checkpoint")
        message = f"every pod gets at least {own.checkpoint_s} s to terminate, but can ask for at most {own.most_s} s"
        yield Finding(where, message, "make tenancy.borrowing.most longer", also=((*_BORROWING, "most"),))


def _allocations(tenancy: Tenancy | None) -> tuple[Allocation, ...]:
    return tenancy.allocations if tenancy else ()


RULES: tuple[tuple[str, Rule], ...] = (
    ("TEN-012", known_pools),
    ("TEN-012", controllers_pool),
    ("TEN-013", room),
    ("TEN-014", own_key),
    ("TEN-015", times),
)
