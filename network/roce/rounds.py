"""Who is measured with whom and when: every pair once, no host in two pairs at a time.

The circle method for round-robin tournaments (Kirkman, 1850): one host stays, the others move on by one place a round.
N hosts take N - 1 rounds, which is the least there can be; an odd N has a place that nobody is at, and takes N.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Host = TypeVar("Host")


def rounds(hosts: Sequence[Host]) -> Iterator[tuple[tuple[Host, Host], ...]]:
    """The pairs of each round, (sender, receiver). Each host sends in as many rounds as it receives, but for one."""
    places: list[int | None] = list(range(len(hosts)))
    if len(places) < 2:
        return
    if len(places) % 2:
        places.insert(0, None)
    half = len(places) // 2
    for number in range(len(places) - 1):
        pairs = []
        for index in range(half):
            one, other = places[index], places[-1 - index]
            if one is None or other is None:
                continue
            # Those who move send while they are in the first half of the circle; who stays sends in every second round.
            swapped = index == 0 and number % 2 == 1
            pairs.append((hosts[other], hosts[one]) if swapped else (hosts[one], hosts[other]))
        yield tuple(pairs)
        places.insert(1, places.pop())


def count(hosts: int) -> int:
    """How many rounds there are."""
    return 0 if hosts < 2 else hosts - 1 + hosts % 2


def seconds(hosts: int, each: float, parallel: int) -> float:
    """How long all rounds take, with `parallel` pairs at a time and `each` seconds a pair."""
    waves = -(-(hosts // 2) // parallel)
    return count(hosts) * waves * each
