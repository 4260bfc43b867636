"""A lower bound on the cost of placing pods, by column generation: the least that a pod of each kind must cost.

The linear program has a column for each load of a host considered so far. Its dual prices are used to search for better loads. When
no load is worth more than its host, the prices are the certificate. Before that, any prices give a bound: Lagrange's by the excess
of each bin, Farley's by scaling all prices down until no load is worth more than its host.
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
"""A bound within this share of itself of the linear program's value is near enough."""


class Columns:
    """The linear program, with the loads of bins as columns.

    Rows: at least the pods of each kind, at most the hosts of each bin, at most the hosts of each pool.
    """

    def __init__(self, problem: Relaxed) -> None:
        self.problem = problem
        self.loads: list[tuple[int, Load]] = []
        self._known: set[tuple[int, Load]] = set()
        most = [*(each.count for each in problem.bins), *problem.quotas]
        rows = [(float(count), INFINITY) for count in problem.counts]
        self.program = Program([*rows, *((-INFINITY, float(count)) for count in most)])

    def grow(self, loads: Iterable[tuple[int, Load]]) -> int:
        """Add the loads that are new. Return how many were."""
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
    """The proof, and the program that it comes from."""

    certificate: Certificate
    columns: Columns
    solved: Solved


@dataclass(frozen=True)
class _Duals:
    """Dual prices. prices: of kinds. quotas: of pools. paid: the worth that a load of a bin must exceed to be useful."""

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
    """Return the bound. first: loads that together can place everything. stop: ends early; the bound is still valid."""
    columns = Columns(problem)
    columns.grow(first)
    pricing = [Pricing(problem, number) for number in range(len(problem.bins))]
    best = Certificate(problem, (0,) * len(problem.counts), (0,) * len(problem.quotas), (0,) * len(problem.bins))
    proving = False
    while True:
        solved = columns.program.solve()
        duals = _Duals.of(problem, solved)
        loads = _best_loads(pricing, duals, proving=proving)
        best = max((best, *_certificates(problem, duals, loads)), key=lambda each: each.bound)
        close = solved.objective * 1e6 - best.bound <= CLOSE * best.bound
        better = 0 if close else columns.grow(_better(duals, loads))
        if close or stop() or (proving and not better):
            return Bounded(best, columns, solved)
        proving = not better


def _best_loads(pricing: list[Pricing], duals: _Duals, *, proving: bool) -> list[Best]:
    loads = [each.best(duals.prices) for each in pricing]
    if not proving:
        return loads
    return [
        each.proved(duals.prices) if quick.upper > paid * (1 + NEAR) + 1 else quick
        for each, quick, paid in zip(pricing, loads, duals.paid, strict=True)
    ]


def _better(duals: _Duals, loads: list[Best]) -> Iterable[tuple[int, Load]]:
    return ((number, each.load) for number, each in enumerate(loads) if each.worth > duals.paid[number] + 1)


def _certificates(problem: Relaxed, duals: _Duals, loads: list[Best]) -> Iterable[Certificate]:
    prices, quotas, most = duals.prices, duals.quotas, [each.upper for each in loads]
    yield Certificate(problem, tuple(prices), tuple(quotas), tuple(most))
    scale = 1.0
    for each, worth in zip(problem.bins, most, strict=True):
        if each.pool >= 0 and worth > each.price + quotas[each.pool]:
            scale = min(scale, (each.price + quotas[each.pool]) / worth)
    if 0 < scale < 1:
        # With lower prices every load is worth proportionally less, or even less because soft costs are subtracted.
        yield Certificate(
            problem,
            tuple(int(price * scale) for price in prices),
            tuple(int(price * scale) + 1 if price else 0 for price in quotas),
            tuple(int(worth * scale) + 1 for worth in most),
        )
