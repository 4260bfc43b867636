"""Shared by the groups of all clouds: which groups must exist, and what is refused before a request is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from clients.clouds import one_line
from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError

Names = Callable[[], Mapping[str, str]]
"""Provider id (`spec.providerID`) -> name, for all Nodes of the cluster: a cloud does not know the names of Nodes."""
CloudGroup = TypeVar("CloudGroup")
Page = TypeVar("Page")

MOST_PAGES = 1000


class LostError(GroupError):
    """The cloud did not answer, or failed internally: it is unknown whether the request was carried out."""

    retryable = True

    def __init__(self, cloud: str, why: object) -> None:
        super().__init__(
            f"no answer from {cloud}, so the result is unknown: {one_line(why)}; the next pass tries again"
        )


def throttled(cloud: str, why: object) -> GroupError:
    """Return the error for a request that the cloud throttled, and so did not carry out."""
    return GroupError(f"{cloud} throttles requests: {one_line(why)}; the next pass tries again")


def in_region(cluster: Cluster) -> list[str]:
    """Return the pools whose machines are in the cloud."""
    return list(cluster.spec.region_pools)


def pages(what: str, listed: Iterable[Page], next_of: Callable[[Page], object]) -> Iterator[Page]:
    """Yield all pages of a list. next_of: returns the token of the next page, falsy at the end.

    Errors: raises GroupError if the list does not end; none of it is used then.
    """
    before: object = None
    for number, page in enumerate(listed):
        yield page
        after = next_of(page)
        if after and (after == before or number >= MOST_PAGES):
            raise GroupError(f"{what}: the cloud returns the same page repeatedly; the list is not used")
        before = after


def exactly_one(
    cluster: Cluster, expected: Sequence[str], candidates: Iterable[tuple[str, str, CloudGroup]]
) -> dict[str, CloudGroup]:
    """Return each expected key -> its only group. candidates: (key, the group's name for people, the group).

    Groups of pools that the spec does not have are ignored. Errors: raises GroupError unless each key has exactly one group: an
    overlooked group would look like a pool without machines.
    """
    by_key: dict[str, list[tuple[str, CloudGroup]]] = {}
    for key, name, group in candidates:
        by_key.setdefault(key, []).append((name, group))
    up = f"`menagerie up {cluster.name}`"
    problems = [
        f"pool {key} has no group in the cloud with the tags or labels of cluster {cluster.name}; {up} creates it"
        for key in expected
        if key not in by_key
    ]
    problems += [
        f"{' and '.join(sorted(name for name, _ in by_key[key]))} are all marked as pool {key}; "
        f"{up} finishes an interrupted run; otherwise delete the group that is not in the stack"
        for key in expected
        if len(by_key.get(key, ())) > 1
    ]
    if problems:
        raise GroupError("\n".join(problems))
    return {key: by_key[key][0][1] for key in expected}


def group_of(groups: Mapping[str, CloudGroup], pool: str) -> CloudGroup:
    """Return the pool's group. Errors: raises GroupError for a pool that is not in the region."""
    if pool not in groups:
        raise GroupError(f"{pool} is not a pool in the region; the pools are: {', '.join(sorted(groups)) or 'none'}")
    return groups[pool]


def refuse_above(pool: str, size: int, most: int) -> None:
    if size > most:
        raise GroupError(
            f"pool {pool}: {size} machines exceed its maximum of {most}; raise pools.{pool}.max and run `up`"
        )


def refuse_below(pool: str, size: int, least: int) -> None:
    if size < least:
        raise GroupError(f"pool {pool}: {size} machines would be left, but its minimum is {least} (pools.{pool}.min)")
