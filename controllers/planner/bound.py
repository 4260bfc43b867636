"""A lower bound on the cost of placing pods, by column generation: what a pod of each kind must cost at least.

The linear program has a column for each load of a host that was thought of. Its dual prices ask for better loads;
when no load is worth more than its host, they are the certificate. Before that, any prices make a bound: Lagrange's by
the excess of each bin, Farley's by scaling all prices down until none is above its host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controllers.planner.certificate import Certificate, Relaxed
from controllers.planner.knapsack import Best
from controllers.planner.lp import INFINITY, Program, Solved
from controllers.planner.pricing import NEAR, Pricing
from controllers.planner.tables import Load

CLOSE = 1e-4
"""Of the linear program's value: as near to it as the bound need come."""


class Columns:
    """The linear program and the loads of bins that are its columns.

    Rows: pods of each kind at least, hosts of each bin at most, hosts of each pool at most.
    """

    def __init__(self, problem: Relaxed) -> None:
        self.problem = problem
        self.loads: list[tuple[int, Load]] = []
        self._known: set[tuple[int, Load]] = set()
        most = [*(each.count for each in problem.bins), *problem.quotas]
        rows = [(float(count), INFINITY) for count in problem.counts]
        self.program = Program([*rows, *((-INFINITY, float(count)) for count in most)])

    def grow(self, loads: Iterable[tuple[int, Load]]) -> int:
        """Add those that aren't there; how many."""
        before = len(self.loads)
        for number, load in loads:
            if load and (number, load) not in self._known:
                self._known.add((number, load))
                self.loads.append((number, load))
                self._add(number, load)
        return len(self.loads) - before

    def _add(self, number: int, load: Load) -> None:
        problem, each = self.problem, self.problem.bins[number]
        soft = sum(count * problem.soft[kind][number] for kind, count in load)
        entries = [*((kind, float(count)) for kind, count in load), (len(problem.counts) + number, 1.0)]
        if each.pool >= 0:
            entries.append((len(problem.counts) + len(problem.bins) + each.pool, 1.0))
        self.program.add((each.price + soft) / 1e6, entries)


@dataclass(frozen=True)
class Bounded:
    """The proof, and the program that it came from."""

    certificate: Certificate
    columns: Columns
    solved: Solved


@dataclass(frozen=True)
class _Duals:
    """prices: of kinds. quotas: of pools. paid: what a load of a bin must be worth to be of use."""

    prices: list[int]
    quotas: list[int]
    paid: list[float]

    @classmethod
    def of(cls, problem: Relaxed, solved: Solved) -> _Duals:
        kinds, bins = len(problem.counts), len(problem.bins)
        prices = [max(0, int(dual * 1e6)) for dual in solved.duals[:kinds]]
        quotas = [max(0, -int(dual * 1e6)) for dual in solved.duals[kinds + bins :]]
        paid = [
            each.price + (quotas[each.pool] if each.pool >= 0 else 0) - limit * 1e6
            for each, limit in zip(problem.bins, solved.duals[kinds : kinds + bins], strict=True)
        ]
        return cls(prices, quotas, paid)


def bounded(problem: Relaxed, first: Iterable[tuple[int, Load]], stop: Callable[[], bool]) -> Bounded:
    """The bound, from loads that can place everything between them. stop: ends early; the bound is one all the same."""
    columns = Columns(problem)
    columns.grow(first)
    pricing = [Pricing(problem, number) for number in range(len(problem.bins))]
    best = Certificate(problem, (0,) * len(problem.counts), (0,) * len(problem.quotas), (0,) * len(problem.bins))
    proving = False
    while True:
        solved = columns.program.solve()
        duals = _Duals.of(problem, solved)
        found = _found(pricing, duals, proving=proving)
        best = max((best, *_certificates(problem, duals, found)), key=lambda each: each.bound)
        close = solved.objective * 1e6 - best.bound <= CLOSE * best.bound
        better = 0 if close else columns.grow(_better(duals, found))
        if close or stop() or (proving and not better):
            return Bounded(best, columns, solved)
        proving = not better


def _found(pricing: list[Pricing], duals: _Duals, *, proving: bool) -> list[Best]:
    found = [each.best(duals.prices) for each in pricing]
    if not proving:
        return found
    return [
        each.proved(duals.prices) if quick.upper > paid * (1 + NEAR) + 1 else quick
        for each, quick, paid in zip(pricing, found, duals.paid, strict=True)
    ]


def _better(duals: _Duals, found: list[Best]) -> Iterable[tuple[int, Load]]:
    return ((number, each.load) for number, each in enumerate(found) if each.worth > duals.paid[number] + 1)


def _certificates(problem: Relaxed, duals: _Duals, found: list[Best]) -> Iterable[Certificate]:
    prices, quotas, most = duals.prices, duals.quotas, [each.upper for each in found]
    yield Certificate(problem, tuple(prices), tuple(quotas), tuple(most))
    scale = 1.0
    for each, worth in zip(problem.bins, most, strict=True):
        if each.pool >= 0 and worth > each.price + quotas[each.pool]:
            scale = min(scale, (each.price + quotas[each.pool]) / worth)
    if 0 < scale < 1:
        # With lower prices every load is worth less in proportion, or lesser still where soft costs are taken off.
        yield Certificate(
            problem,
            tuple(int(price * scale) for price in prices),
            tuple(int(price * scale) + 1 if price else 0 for price in quotas),
            tuple(int(worth * scale) + 1 for worth in most),
        )
