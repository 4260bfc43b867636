"""What the groups of every cloud have in common: which pools there must be, and what is refused before a cloud is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from cluster.spec import Cluster
from scheduling.autoscaler.groups import GroupError

Names = Callable[[], Mapping[str, str]]
"""provider id of a Node (`spec.providerID`) -> its name, of all Nodes of the cluster: a cloud knows no names of Nodes."""
Found = TypeVar("Found")


def in_region(cluster: Cluster) -> list[str]:
    """The pools whose machines are the cloud's."""
    return [name for name, pool in cluster.spec.pools.items() if pool.machine is not None]


def one_each(cluster: Cluster, found: Iterable[tuple[str, str, Found]]) -> dict[str, Found]:
    """Pool -> the one that is its own. found: pool, name for people, what was found.

    GroupError unless each pool of the spec has exactly one: a pool that is not seen looks like one without machines. Those of
    pools that the spec does not have are left alone.
    """
    wanted = in_region(cluster)
    by_pool: dict[str, list[tuple[str, Found]]] = {}
    for pool, name, each in found:
        by_pool.setdefault(pool, []).append((name, each))
    problems = [
        f"pool {pool} has no group in the cloud with the marks of cluster {cluster.name}; `menagerie up {cluster.name}` makes it"
        for pool in wanted
        if pool not in by_pool
    ]
    problems += [
        f"{' and '.join(sorted(name for name, _ in by_pool[pool]))} both say that they are pool {pool}; a run of "
        f"`menagerie up {cluster.name}` that was cut short ends it, or delete the one that is not in its stack"
        for pool in wanted
        if len(by_pool.get(pool, ())) > 1
    ]
    problems += [f"{name} has the marks of cluster {cluster.name}, and no pool" for name, _ in by_pool.get("", ())]
    if problems:
        raise GroupError("\n".join(problems))
    return {pool: by_pool[pool][0][1] for pool in wanted}


def known(found: Mapping[str, Found], pool: str) -> Found:
    """GroupError for a pool that is none of the region's."""
    if pool not in found:
        raise GroupError(f"{pool} is no pool in the region; there are {', '.join(sorted(found)) or 'none'}")
    return found[pool]


def refuse_above(pool: str, size: int, most: int) -> None:
    if size > most:
        raise GroupError(f"pool {pool}: {size} machines are more than its {most}; raise pools.{pool}.max and run `up`")


def refuse_below(pool: str, size: int, least: int) -> None:
    if size < least:
        raise GroupError(f"pool {pool}: {size} machines would be left, and it keeps {least} (pools.{pool}.min)")
