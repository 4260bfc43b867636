"""Finds the most valuable load of one host, exactly and in integers, with an upper bound if the search is stopped early.

It is a depth-first search that knows the cost of each deviation in advance. With prices for the dimensions, taken from the linear
relaxation, a load is worth the price of the whole room, less the price of what it leaves free, less what each pod gains or lacks by
its own reduced price. Any prices give a valid bound; good prices give a tight one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.planner.tables import Load, Vector

UNIT = 1 << 20
"""Units per millionth of a dollar, for prices of dimensions."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best load found, and its worth. upper: no load is worth more."""

    load: Load
    worth: int
    upper: int


class Search:
    """One search. items: (kind, gain of one pod, its size, largest number of pods) of each kind that may be in the load."""

    def __init__(
        self,
        room: Vector,
        items: Sequence[tuple[int, int, Vector, int]],
        prices: Sequence[int],
        *,
        slack: int = 0,
        nodes: int = 4000,
        start: tuple[Load, int] = ((), 0),
    ) -> None:
        self.room, self.slack, self.nodes = room, slack * UNIT, nodes
        reduced = []
        for kind, gain, size, most in items:
            price = sum(p * amount for p, amount in zip(prices, size, strict=True))
            fits = min((free // amount for free, amount in zip(room, size, strict=True) if amount), default=0)
            if gain > 0 and min(most, fits) > 0:
                reduced.append((gain * UNIT - price, kind, gain, size, min(most, fits)))
        # Kinds whose deviations cost most are decided first; kinds whose deviations are free fill the remaining room.
        self.items = sorted(reduced, key=lambda item: (-abs(item[0]), item[1]))
        whole = sum(p * free for p, free in zip(prices, room, strict=True))
        self.bound = whole + sum(item[0] * item[4] for item in self.items if item[0] > 0)
        self.best, self.load, self.open = start[1] * UNIT, start[0], 0

    def run(self) -> Best:
        self._descend(0, list(self.room), self.bound, 0, [])
        upper = max(self.best + self.slack, self.open)
        return Best(self.load, self.best // UNIT, min(upper, self.bound) // UNIT)

    def _descend(self, at: int, free: list[int], bound: int, worth: int, taken: list[tuple[int, int]]) -> None:
        if bound <= self.best + self.slack:
            return
        if at == len(self.items):
            if worth > self.best:
                self.best, self.load = worth, tuple(sorted(taken))
            return
        self.nodes -= 1
        if self.nodes < 0:
            self.open = max(self.open, bound)
            return
        reduced, kind, gain, size, most = self.items[at]
        fits = most
        for amount, left in zip(size, free, strict=True):
            if amount and left // amount < fits:
                fits = left // amount
        for count in range(fits, -1, -1) if reduced >= 0 else range(fits + 1):
            # Leaving out a pod with a positive reduced price costs; so does adding one with a negative price.
            loss = reduced * (most - count) if reduced >= 0 else -reduced * count
            if bound - loss <= self.best + self.slack:
                return
            left_over = [left - amount * count for left, amount in zip(free, size, strict=True)]
            more = [*taken, (kind, count)] if count else taken
            self._descend(at + 1, left_over, bound - loss, worth + gain * UNIT * count, more)
