"""Why a pod waits or can never start: the nearest pool, and its first obstacle."""

from __future__ import annotations

from controllers.planner.admission import Left
from controllers.planner.feasibility import Obstacle, ObstacleKind
from controllers.planner.gangs import empty_world, most_of
from controllers.planner.packing import Packer, PackingState
from controllers.planner.plan import Fate, Verdict
from controllers.planner.resources import describe
from controllers.planner.supply import PoolSupply
from controllers.planner.tables import Tables
from controllers.planner.wishes import Gang


def undecided(missing: tuple[str, ...]) -> Verdict:
    return Verdict(Fate.WAITING, f"nothing is decided: {' and '.join(missing)} did not answer")


def incomplete(gang: Gang, there: int) -> Verdict:
    return Verdict(Fate.WAITING, f"waits for the rest of {gang.name}: {there} of its {gang.members} pods exist")


def unfit(tables: Tables, kind: int) -> Verdict:
    """Return the verdict for pods that fit on no host, not even on an empty one."""
    row = tables.against[kind]
    if not row:
        return Verdict(Fate.NEVER, "no pool can ever fit this: there are no pools")
    pools = [ground.pool for ground in tables.grounds]
    nearest = min(range(len(row)), key=lambda at: (len(row[at]), row[at][-1].kind, _lack(row[at]), pools[at].name))
    first = row[nearest][0]
    if first.kind is ObstacleKind.SIZE:
        asks, has = describe(first.resource, first.requested), describe(first.resource, first.there)
        who = "the largest host" if len(row) > 1 else "a host"
        return Verdict(
            Fate.NEVER,
            f"no pool can ever fit this: it requests {asks}, but {who} has {has} (pool {pools[nearest].name})",
        )
    return Verdict(Fate.NEVER, f"no pool can ever fit this: the nearest, {pools[nearest].name}, {first.text}")


def _lack(obstacles: tuple[Obstacle, ...]) -> int:
    return min((each.requested - each.there for each in obstacles if each.kind is ObstacleKind.SIZE), default=0)


def with_gang(gang: str, because: Verdict) -> Verdict:
    """Return the verdict for the pods of a gang that has a pod which can never start."""
    return Verdict(
        because.fate, f"starts only together with all of {gang}, one of whose pods can't start: {because.reason}"
    )


def of_left(tables: Tables, packer: Packer, state: PackingState, left: Left) -> Verdict:
    """Return the verdict for pods that could fit but found no room. state: with everything that is placed or held."""
    if left.unit.gang:
        return _of_gang(tables, packer, state, left)
    pool = _nearest(tables, next(iter(left.counts)))
    if not left.ever:
        return Verdict(Fate.NEVER, f"no pool can ever fit this: the nearest, {pool.name}, may not have any hosts")
    if left.behind:
        return Verdict(Fate.WAITING, f"waits: room in pool {pool.name} is held for {left.behind}, which came earlier")
    if not pool.most:
        return Verdict(Fate.WAITING, f"waits: pool {pool.name} may not have any hosts now")
    return Verdict(Fate.WAITING, f"waits: pool {pool.name} is at its maximum of {_hosts(pool)} and has no room")


def _hosts(pool: PoolSupply) -> str:
    return "1 host" if pool.most == 1 else f"{pool.most} hosts"


def _nearest(tables: Tables, kind: int) -> PoolSupply:
    """Return the cheapest pool for such a pod."""
    able = [
        (tables.soft[kind][at] + ground.pool.price, ground.pool.name, ground.pool)
        for at, ground in enumerate(tables.grounds)
        if tables.may[kind][at]
    ]
    return min(able, key=lambda each: each[:2])[2]


def _of_gang(tables: Tables, packer: Packer, state: PackingState, left: Left) -> Verdict:
    gang = tables.gangs[left.unit.gang]
    size, one = left.unit.size, f"one {gang.within}" if gang.within else ""
    if not left.ever:
        fits, where, *_ = most_of(packer, empty_world(tables), left.unit)
        if not gang.within:
            quotas = f"the pools' maximum sizes have room for only {fits} of its {size} pods"
            return Verdict(Fate.NEVER, f"{gang.name} can never start: {quotas}")
        at = f", {where}," if where else ""
        largest = f"the largest{at} has room for {fits}"
        return Verdict(Fate.NEVER, f"{gang.name} would be split: it needs {one} for its {size} pods, but {largest}")
    if left.behind:
        return Verdict(Fate.WAITING, f"{gang.name} waits: room is held for {left.behind}, which came earlier")
    fits, where, *_ = most_of(packer, state, left.unit)
    at = f" in {one} ({where})" if gang.within and where else ""
    return Verdict(
        Fate.WAITING, f"{gang.name} waits: {fits} of its {size} pods fit now{at}, and none starts until all can"
    )
