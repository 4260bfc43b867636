"""A proof that no plan costs less, which needs no trust in whoever found it: prices for pods, and one sum.

Every kind of pod has a price, in millionths of a dollar an hour. A host of a pool may hold many loads; none of them is
worth more than `most`, the pool's, by these prices (soft costs taken off). Let a pool's excess be what `most` lies
above the price of its host. Then whoever places all pods pays at least

    sum of pods * price - sum of quotas * (price of quota) - sum of hosts * excess

since each of the hosts that he uses (of those that are there, and at most the quota of those that can be added)
carries no more than its own price and its excess. Whole numbers only, so that the sum is what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controllers.planner.tables import Vector


@dataclass(frozen=True, slots=True)
class Bin:
    """Hosts that are alike to the relaxed problem, in which gangs may lie anywhere.

    count: how many there are or can be added. price: of adding one, 0 where they are there. pool: the number of the
    quota that they count against, -1 where they are there.
    """

    ground: int
    room: Vector
    price: int
    count: int
    pool: int


@dataclass(frozen=True)
class Relaxed:
    """The problem that the bound is of: `counts` pods of each kind onto bins, and no more of a pool than its quota.

    may, soft: of a kind on a bin.
    """

    sizes: list[Vector]
    counts: list[int]
    bins: list[Bin]
    quotas: list[int]
    may: list[list[bool]]
    soft: list[list[int]]


@dataclass(frozen=True)
class Certificate:
    """prices: of each kind. quota_prices: of each pool's quota. most: of each bin, the most that a load is worth."""

    problem: Relaxed
    prices: tuple[int, ...]
    quota_prices: tuple[int, ...]
    most: tuple[int, ...]

    @property
    def bound(self) -> int:
        """The sum above, in millionths of a dollar an hour: a bound if `most` is true."""
        worth = sum(count * price for count, price in zip(self.problem.counts, self.prices, strict=True))
        quotas = sum(count * price for count, price in zip(self.problem.quotas, self.quota_prices, strict=True))
        excess = sum(each.count * self._excess(number) for number, each in enumerate(self.problem.bins))
        return max(0, worth - quotas - excess)

    def _excess(self, number: int) -> int:
        each = self.problem.bins[number]
        return max(0, self.most[number] - each.price - (self.quota_prices[each.pool] if each.pool >= 0 else 0))

    def holds(self, most_of: Callable[[int], int]) -> bool:
        """Whether every `most` is one: most_of(bin) is the checker's own most, in whichever way he finds it."""
        honest = min(self.prices, default=0) >= 0 and min(self.quota_prices, default=0) >= 0
        return honest and all(most_of(number) <= most for number, most in enumerate(self.most))

    def gains(self, number: int) -> list[int]:
        """What a pod of each kind is worth on a bin; 0 where it may not go or is worth nothing."""
        may, soft = self.problem.may, self.problem.soft
        return [
            max(0, price - soft[kind][number]) if may[kind][number] else 0 for kind, price in enumerate(self.prices)
        ]

    def __str__(self) -> str:
        """Everything that the sum is made of, in dollars an hour."""
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
