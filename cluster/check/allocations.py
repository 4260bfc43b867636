"""TEN-012 to TEN-015: allocations that can't be met, and times of borrowing that can't be kept.

Whether a team is there is known to the directory alone; `tenancy sync --hosts` says so of one that is not.
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


def named(subject: Subject) -> Iterator[Finding]:
    """Each of a pool that is there, and one number for a team's hosts of it."""
    first: dict[tuple[str, str], int] = {}
    pools = ", ".join(sorted(subject.spec.pools)) or "none"
    for index, each in enumerate(_allocations(subject.spec.tenancy)):
        where = (*_PLACE, index)
        if each.pool not in subject.spec.pools:
            yield Finding((*where, "pool"), f"{each.pool} is no pool of {subject.spec.name}", f"its pools: {pools}")
        before = first.setdefault((each.pool, each.team), index)
        if before != index:
            message = f"{each.team} has an allocation of {each.pool} already"
            hint = "write one, with all hosts"
            yield Finding((*where, "team"), message, hint, also=((*_PLACE, before, "team"),))


def home(subject: Subject) -> Iterator[Finding]:
    """The controllers' pool is there, and has a host."""
    tenancy, pools = subject.spec.tenancy, subject.spec.pools
    if tenancy is None or tenancy.controllers is None:
        return
    where: Where = ("tenancy", "controllers")
    pool = pools.get(tenancy.controllers)
    if pool is None:
        hint = f"its pools: {', '.join(sorted(pools)) or 'none'}"
        yield Finding(where, f"{tenancy.controllers} is no pool of {subject.spec.name}", hint)
    elif not pool.site and not pool.max:
        message = f"{tenancy.controllers} never has a machine; no controller would run"
        yield Finding(
            where,
            message,
            f"give pools.{tenancy.controllers} a max, or write another",
            also=(("pools", tenancy.controllers),),
        )


def room(subject: Subject) -> Iterator[Finding]:
    """A pool at a site has the machines of its file, one in the region grows to its max."""
    by_pool: dict[str, list[int]] = defaultdict(list)
    allocations = _allocations(subject.spec.tenancy)
    for index, each in enumerate(allocations):
        by_pool[each.pool].append(index)
    for name, indices in by_pool.items():
        pool = subject.spec.pools.get(name)
        if pool is None:
            continue
        there = len(subject.cluster.hosts.get(name, ())) if pool.site else pool.max
        given = sum(allocations[index].hosts for index in indices)
        if given > there:
            last, *others = ((*_PLACE, index, "hosts") for index in reversed(indices))
            whose = "grows to" if pool.site is None else "has"
            message = f"allocations of {name} are {given} hosts, and it {whose} {there}"
            yield Finding(last, message, f"take {given - there} from them, or give the pool more", also=tuple(others))


def own_key(subject: Subject) -> Iterator[Finding]:
    """What kubelets register with would be taken away by the next run, and come back with the next machine."""
    for name in sorted({each.pool for each in _allocations(subject.spec.tenancy)} & subject.spec.pools.keys()):
        pool, place = subject.spec.pools[name], ("pools", name)
        hint = "remove it; allocations say whose the hosts are"
        if TEAM_KEY in pool.labels:
            where: Where = (*place, "labels", TEAM_KEY)
            yield Finding(where, f"the pool's own label {TEAM_KEY} is what allocations give its hosts", hint)
        for index, taint in enumerate(pool.taints):
            if taint.key == TEAM_KEY:
                where = (*place, "taints", index, "key")
                yield Finding(where, f"the pool's own taint {TEAM_KEY} is what allocations give its hosts", hint)


def times(subject: Subject) -> Iterator[Finding]:
    """Kubernetes counts the time that a pod has to end in whole seconds."""
    tenancy = subject.spec.tenancy
    if tenancy is None:
        return
    own = tenancy.borrowing
    for key, value in (("checkpoint", own.checkpoint), ("most", own.most)):
        if value % 1000 or not value:
            where = (*_BORROWING, key)
            yield Finding(where, f"{show(where)} {value}ms is not in whole seconds", "write 2m")
    if own.checkpoint > own.most:
        where = (*_BORROWING, "checkpoint")
        message = f"each pod has {own.checkpoint_s} s to end at least, and may ask for {own.most_s} s at most"
        yield Finding(where, message, "write a longer most", also=((*_BORROWING, "most"),))


def _allocations(tenancy: Tenancy | None) -> tuple[Allocation, ...]:
    return tenancy.allocations if tenancy else ()


RULES: tuple[tuple[str, Rule], ...] = (
    ("TEN-012", named),
    ("TEN-012", home),
    ("TEN-013", room),
    ("TEN-014", own_key),
    ("TEN-015", times),
)
