"""What the groups of every cloud have in common: which pools there must be, and what is refused before a cloud is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError

Names = Callable[[], Mapping[str, str]]
"""provider id of a Node (`spec.providerID`) -> its name, of all Nodes of the cluster: a cloud knows no names of Nodes."""
Found = TypeVar("Found")
Page = TypeVar("Page")

CONNECT_S, READ_S = 5, 15
"""Of one request. Read when a client is made."""
TRIES = 3
"""Of one request whose repetition changes nothing more, with growing pauses between them."""
MOST_PAGES = 1000


class LostError(GroupError):
    """No answer, or the cloud's own failure: whether the request was carried out is not known."""

    retryable = True

    def __init__(self, cloud: str, why: object) -> None:
        super().__init__(
            f"no answer from {cloud} that tells whether it was done: {one_line(why)}; the next pass asks again"
        )


def throttled(cloud: str, why: object) -> GroupError:
    """Nothing was done."""
    return GroupError(f"{cloud} says to slow down: {one_line(why)}; the next pass asks again")


def one_line(why: object, most: int = 400) -> str:
    """As much of it as fits an error."""
    return " ".join(str(why).split())[:most]


def in_region(cluster: Cluster) -> list[str]:
    """The pools whose machines are the cloud's."""
    return [name for name, pool in cluster.spec.pools.items() if pool.machine is not None]


def pages(what: str, listed: Iterable[Page], next_of: Callable[[Page], object]) -> Iterator[Page]:
    """All pages of a list. GroupError where the list has no end: nothing of it is believed.

    next_of: what asks for the page that follows, falsy at the end.
    """
    before: object = None
    for number, page in enumerate(listed):
        yield page
        after = next_of(page)
        if after and (after == before or number >= MOST_PAGES):
            raise GroupError(f"{what}: the cloud gives one page again and again; none is believed")
        before = after


def exactly_one(cluster: Cluster, wanted: Sequence[str], found: Iterable[tuple[str, str, Found]]) -> dict[str, Found]:
    """What is wanted -> the one group that is it. found: what it is, its name for people, the group.

    GroupError unless there is exactly one for each: a pool that is not seen looks like one without machines. Those of pools
    that the spec does not have are left alone.
    """
    there: dict[str, list[tuple[str, Found]]] = {}
    for what, name, group in found:
        there.setdefault(what, []).append((name, group))
    again = f"`menagerie up {cluster.name}`"
    problems = [
        f"pool {what} has no group in the cloud with the marks of cluster {cluster.name}; {again} makes it"
        for what in wanted
        if what not in there
    ]
    problems += [
        f"{' and '.join(sorted(name for name, _ in there[what]))} both say that they are pool {what}; "
        f"{again} ends a run that was cut short; else delete the one that is not in its stack"
        for what in wanted
        if len(there.get(what, ())) > 1
    ]
    if problems:
        raise GroupError("\n".join(problems))
    return {what: there[what][0][1] for what in wanted}


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
