"""The schedule of measurements: every pair once, no host in two pairs at a time.

It uses the circle method for round-robin tournaments (Kirkman, 1850): one host stays, the others move by one place per round.
N hosts take N - 1 rounds, the minimum. An odd N has an empty place and takes N rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Host = TypeVar("Host")


def rounds(hosts: Sequence[Host]) -> Iterator[tuple[tuple[Host, Host], ...]]:
    """Yield the pairs (sender, receiver) of each round. For each host, rounds of sending and receiving differ by at most one."""
    places: list[int | None] = list(range(len(hosts)))
    if len(places) < 2:
        return
    if len(places) % 2:
        places.insert(0, None)
    half = len(places) // 2
    for number in range(len(places) - 1):
        pairs = []
        for index in range(half):
            first, second = places[index], places[-1 - index]
            if first is None or second is None:
                continue
            # Moving hosts send while they are in the first half of the circle. The fixed host sends in every other round.
            swapped = index == 0 and number % 2 == 1
            pairs.append((hosts[second], hosts[first]) if swapped else (hosts[first], hosts[second]))
        yield tuple(pairs)
        places.insert(1, places.pop())


def count(hosts: int) -> int:
    """Return the number of rounds."""
    return 0 if hosts < 2 else hosts - 1 + hosts % 2


def seconds(hosts: int, each: float, parallel: int) -> float:
    """Return the duration of all rounds, with `parallel` pairs at a time and `each` seconds per pair."""
    waves = -(-(hosts // 2) // parallel)
    return count(hosts) * waves * each
