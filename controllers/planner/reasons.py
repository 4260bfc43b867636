"""Why a pod waits or never starts: the nearest pool, and the first thing there that stands in the way."""

from __future__ import annotations

from controllers.planner.admission import Left
from controllers.planner.feasibility import Kind, Obstacle
from controllers.planner.gangs import empty_world, most_of
from controllers.planner.packing import Packer, State
from controllers.planner.plan import Fate, Verdict
from controllers.planner.resources import describe
from controllers.planner.supply import Pool
from controllers.planner.tables import Tables
from controllers.planner.wishes import Gang


def undecided(missing: tuple[str, ...]) -> Verdict:
    return Verdict(Fate.WAITING, f"nothing is decided: {' and '.join(missing)} did not answer")


def incomplete(gang: Gang, there: int) -> Verdict:
    return Verdict(Fate.WAITING, f"waits for the rest of {gang.name}: {there} of its {gang.members} pods are there")


def unfit(tables: Tables, kind: int) -> Verdict:
    """Of pods that no host may take, however empty."""
    row = tables.against[kind]
    if not row:
        return Verdict(Fate.NEVER, "no pool can ever fit this: there is none")
    pools = [ground.pool for ground in tables.grounds]
    nearest = min(range(len(row)), key=lambda at: (len(row[at]), row[at][-1].kind, _lack(row[at]), pools[at].name))
    first = row[nearest][0]
    if first.kind is Kind.SIZE:
        asks, has = describe(first.resource, first.wanted), describe(first.resource, first.there)
        who = "the largest host" if len(row) > 1 else "a host"
        return Verdict(
            Fate.NEVER, f"no pool can ever fit this: it asks for {asks}, {who} has {has} (pool {pools[nearest].name})"
        )
    return Verdict(Fate.NEVER, f"no pool can ever fit this: the nearest, {pools[nearest].name}, {first.text}")


def _lack(found: tuple[Obstacle, ...]) -> int:
    return min((each.wanted - each.there for each in found if each.kind is Kind.SIZE), default=0)


def with_gang(gang: str, because: Verdict) -> Verdict:
    """Of the pods of a gang one of which can never start."""
    return Verdict(because.fate, f"starts only with all of {gang}, and of one of its pods: {because.reason}")


def of_left(tables: Tables, packer: Packer, state: State, left: Left) -> Verdict:
    """Of pods that might go somewhere and found no room. state: with all that is placed, or held, in it."""
    if left.unit.gang:
        return _of_gang(tables, packer, state, left)
    pool = _nearest(tables, next(iter(left.counts)))
    if not left.ever:
        return Verdict(Fate.NEVER, f"no pool can ever fit this: the nearest, {pool.name}, may have no hosts")
    if left.behind:
        return Verdict(Fate.WAITING, f"waits: room in pool {pool.name} is held for {left.behind}, which came earlier")
    if not pool.most:
        return Verdict(Fate.WAITING, f"waits: pool {pool.name} may have no hosts")
    return Verdict(Fate.WAITING, f"waits: pool {pool.name} has {_hosts(pool)}, and none with room")


def _hosts(pool: Pool) -> str:
    return "its only host" if pool.most == 1 else f"all of its {pool.most} hosts"


def _nearest(tables: Tables, kind: int) -> Pool:
    """The pool that takes such a pod for the least."""
    able = [
        (tables.soft[kind][at] + ground.pool.price, ground.pool.name, ground.pool)
        for at, ground in enumerate(tables.grounds)
        if tables.may[kind][at]
    ]
    return min(able, key=lambda each: each[:2])[2]


def _of_gang(tables: Tables, packer: Packer, state: State, left: Left) -> Verdict:
    gang = tables.gangs[left.unit.gang]
    size, one = left.unit.size, f"one {gang.within}" if gang.within else ""
    if not left.ever:
        fits, where, *_ = most_of(packer, empty_world(tables), left.unit)
        if not gang.within:
            quotas = f"the pools' quotas have room for {fits} of its {size} pods"
            return Verdict(Fate.NEVER, f"{gang.name} can never start: {quotas}")
        at = f", {where}," if where else ""
        largest = f"the largest{at} has room for {fits}"
        return Verdict(Fate.NEVER, f"{gang.name} would be split: it wants {one} for its {size} pods, and {largest}")
    if left.behind:
        return Verdict(Fate.WAITING, f"{gang.name} waits: room is held for {left.behind}, which came earlier")
    fits, where, *_ = most_of(packer, state, left.unit)
    at = f" in {one} ({where})" if gang.within and where else ""
    return Verdict(
        Fate.WAITING, f"{gang.name} waits: {fits} of its {size} pods fit now{at}, and none starts before all can"
    )
