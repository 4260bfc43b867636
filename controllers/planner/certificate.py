"""A proof that no plan costs less. It can be checked without trusting the solver: prices for pods, and one sum.

Every kind of pod has a price, in millionths of a dollar an hour. A host of a pool may hold many loads. By these prices, minus soft
costs, none of them is worth more than the pool's `most`. A pool's excess is the amount by which `most` exceeds the price of its host.
Then placing all pods costs at least

    sum of pods * price - sum of quotas * (price of quota) - sum of hosts * excess

because each host used (an existing one, or one of those that can be added within the quota) carries no more than its own price plus
its excess. All numbers are integers, so the sum is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controllers.planner.tables import Vector


@dataclass(frozen=True, slots=True)
class Bin:
    """Hosts that are alike in the relaxed problem, in which gangs may be placed anywhere.

    count: how many exist or can be added. price: of adding one, 0 for existing hosts. pool: number of the quota that they count
    against, -1 for existing hosts.
    """

    ground: int
    room: Vector
    price: int
    count: int
    pool: int


@dataclass(frozen=True)
class Relaxed:
    """The problem that is bounded: place `counts` pods of each kind on bins, with at most its quota of hosts of each pool.

    may, soft: [kind][bin].
    """

    sizes: list[Vector]
    counts: list[int]
    bins: list[Bin]
    quotas: list[int]
    may: list[list[bool]]
    soft: list[list[int]]


@dataclass(frozen=True)
class Certificate:
    """The proof. prices: of each kind. quota_prices: of each pool's quota. most: the highest worth of a load, per bin."""

    problem: Relaxed
    prices: tuple[int, ...]
    quota_prices: tuple[int, ...]
    most: tuple[int, ...]

    @property
    def bound(self) -> int:
        """Return the sum above, in millionths of a dollar an hour. It is a bound if `most` is correct."""
        worth = sum(count * price for count, price in zip(self.problem.counts, self.prices, strict=True))
        quotas = sum(count * price for count, price in zip(self.problem.quotas, self.quota_prices, strict=True))
        excess = sum(each.count * self._excess(number) for number, each in enumerate(self.problem.bins))
        return max(0, worth - quotas - excess)

    def _excess(self, number: int) -> int:
        each = self.problem.bins[number]
        return max(0, self.most[number] - each.price - (self.quota_prices[each.pool] if each.pool >= 0 else 0))

    def holds(self, most_of: Callable[[int], int]) -> bool:
        """Whether every `most` is correct. most_of(bin): the maximum as the checker determines it."""
        honest = min(self.prices, default=0) >= 0 and min(self.quota_prices, default=0) >= 0
        return honest and all(most_of(number) <= most for number, most in enumerate(self.most))

    def gains(self, number: int) -> list[int]:
        """Return what a pod of each kind is worth on a bin; 0 if it may not go there or is worth nothing."""
        may, soft = self.problem.may, self.problem.soft
        return [
            max(0, price - soft[kind][number]) if may[kind][number] else 0 for kind, price in enumerate(self.prices)
        ]

    def __str__(self) -> str:
        """Show all terms of the sum, in dollars an hour."""
        problem = self.problem
        lines = [f"no plan for these {sum(problem.counts)} pods costs less than {self.bound / 1e6:.6f} $/h:"]
        lines += [
            f"  {count:6} pods at {price / 1e6:11.6f}"
            for count, price in zip(problem.counts, self.prices, strict=True)
            if count and price
        ]
        lines += [
            f"- {count:6} of a quota at {price / 1e6:.6f}"
            for count, price in zip(problem.quotas, self.quota_prices, strict=True)
            if price
        ]
        for number, each in enumerate(problem.bins):
            worth = f"carry at most {self.most[number] / 1e6:.6f} for {each.price / 1e6:.6f}"
            lines.append(f"- {each.count:6} hosts that {worth}: {self._excess(number) / 1e6:.6f} each")
        return "\n".join(lines)
