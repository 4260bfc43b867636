"""A lower bound on the cost of placing pods, by column generation: what a pod of each kind must cost at least.

The linear program has a column for each load of a host that was thought of. Its dual prices ask for better loads;
when no load is worth more than its host, they are the certificate. Before that, any prices make a bound: Lagrange's by
the excess of each bin, Farley's by scaling all prices down until none is above its host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from scheduling.planner.certificate import Bin, Certificate, Relaxed
from scheduling.planner.knapsack import UNIT, Best, Search
from scheduling.planner.lp import INFINITY, Program, Solved
from scheduling.planner.tables import Load

CLOSE = 1e-4
"""Of the linear program's value: as near to it as the bound need come."""
NODES = 300
"""Of a search for a better load, before a whole-number program is asked whether there is any."""


@dataclass
class Columns:
    """Loads of bins, in the order of the linear program's columns."""

    loads: list[tuple[int, Load]] = field(default_factory=list)
    known: set[tuple[int, Load]] = field(default_factory=set)

    def is_new(self, number: int, load: Load) -> bool:
        if not load or (number, load) in self.known:
            return False
        self.known.add((number, load))
        self.loads.append((number, load))
        return True


@dataclass(frozen=True)
class Bounded:
    """value: of the linear program, in millionths of a dollar. whole: bound and program met."""

    bound: int
    certificate: Certificate
    columns: Columns
    solved: Solved
    program: Program
    whole: bool


def rows_of(problem: Relaxed) -> list[tuple[float, float]]:
    """Rows of the program: pods of each kind at least, hosts of each bin at most, hosts of each pool at most."""
    pods = [(float(count), INFINITY) for count in problem.counts]
    return [*pods, *((-INFINITY, float(each.count)) for each in problem.bins), *_quota_rows(problem)]


def _quota_rows(problem: Relaxed) -> list[tuple[float, float]]:
    return [(-INFINITY, float(quota)) for quota in problem.quotas]


def add(program: Program, problem: Relaxed, number: int, load: Load) -> None:
    """The column of a load of a bin."""
    each = problem.bins[number]
    soft = sum(count * problem.soft[kind][number] for kind, count in load)
    entries = [(kind, float(count)) for kind, count in load]
    entries.append((len(problem.counts) + number, 1.0))
    if each.pool >= 0:
        entries.append((len(problem.counts) + len(problem.bins) + each.pool, 1.0))
    program.add((each.price + soft) / 1e6, entries)


def bounded(problem: Relaxed, first: Iterable[tuple[int, Load]], stop: Callable[[], bool]) -> Bounded:
    """The bound, from loads that can place everything between them. stop: ends early; the bound is one all the same."""
    program, columns = Program(rows_of(problem)), Columns()
    for number, load in first:
        if columns.is_new(number, load):
            add(program, problem, number, load)
    pricing = [_Pricing(problem, number) for number in range(len(problem.bins))]
    best = Certificate((0,) * len(problem.counts), (0,) * len(problem.quotas), (0,) * len(problem.bins))
    bound, proving = 0, False
    while True:
        solved = program.solve()
        prices = [max(0, int(dual * 1e6)) for dual in solved.duals[: len(problem.counts)]]
        quotas = [max(0, -int(dual * 1e6)) for dual in solved.duals[len(problem.counts) + len(problem.bins) :]]
        limits = [-dual * 1e6 for dual in solved.duals[len(problem.counts) :][: len(problem.bins)]]
        paid = [
            each.price + (quotas[each.pool] if each.pool >= 0 else 0) + limit
            for each, limit in zip(problem.bins, limits, strict=True)
        ]
        found = [each.best(prices) for each in pricing]
        if proving:
            found = [
                each.proved(prices) if quick.upper > most * (1 + CLOSE / 3) + 1 else quick
                for each, quick, most in zip(pricing, found, paid, strict=True)
            ]
        for certificate in _certificates(problem, prices, quotas, [each.upper for each in found]):
            if (value := certificate.bound(problem)) > bound:
                bound, best = value, certificate
        if solved.objective * 1e6 - bound <= CLOSE * bound:
            return Bounded(bound, best, columns, solved, program, whole=True)
        better = 0
        for number, each in enumerate(found):
            if each.worth > paid[number] + 1 and columns.is_new(number, each.load):
                add(program, problem, number, each.load)
                better += 1
        if stop() or (not better and proving):
            return Bounded(bound, best, columns, solved, program, whole=False)
        proving = not better


def _certificates(problem: Relaxed, prices: list[int], quotas: list[int], most: list[int]) -> Iterable[Certificate]:
    yield Certificate(tuple(prices), tuple(quotas), tuple(most))
    scale = 1.0
    for each, worth in zip(problem.bins, most, strict=True):
        own = each.price + (quotas[each.pool] if each.pool >= 0 else 0)
        if each.pool >= 0 and worth > own:
            scale = min(scale, own / worth)
    if 0 < scale < 1:
        # With lower prices every load is worth less in proportion, or lesser still where soft costs are taken off.
        yield Certificate(
            tuple(int(price * scale) for price in prices),
            tuple(-int(-price * scale // 1) for price in quotas),
            tuple(int(worth * scale) + 1 for worth in most),
        )


class _Pricing:
    """The load of a bin that is worth most by given prices: again and again, so with one small program kept warm."""

    def __init__(self, problem: Relaxed, number: int) -> None:
        self.problem, self.number = problem, number
        self.bin: Bin = problem.bins[number]
        self.kinds = [kind for kind, row in enumerate(problem.may) if row[number]]
        self.program = self._program()
        self.whole: Program | None = None

    def _program(self) -> Program:
        program = Program([(-INFINITY, float(amount)) for amount in self.bin.room], maximise=True)
        for kind in self.kinds:
            entries = [(at, float(amount)) for at, amount in enumerate(self.problem.sizes[kind]) if amount]
            program.add(0.0, entries, float(self.problem.counts[kind]))
        return program

    def best(self, prices: list[int]) -> Best:
        """A good load, soon; and a bound that may be far from it."""
        gains = self._gains(prices)
        if not any(gains):
            return Best((), 0, 0)
        self.program.costs([gain / 1e6 for gain in gains])
        weights = [max(0, round(dual * 1e6 * UNIT)) for dual in self.program.solve().duals]
        items = [
            (kind, gain, self.problem.sizes[kind], self.problem.counts[kind])
            for kind, gain in zip(self.kinds, gains, strict=True)
        ]
        return Search(self.bin.room, items, weights, nodes=NODES).run()

    def proved(self, prices: list[int]) -> Best:
        """The best load, and the same as a bound but for the solver's last digits."""
        gains = self._gains(prices)
        if not any(gains):
            return Best((), 0, 0)
        if self.whole is None:
            self.whole = self._program()
            self.whole.integral(CLOSE / 3)
        self.whole.costs([gain / 1e6 for gain in gains])
        solved = self.whole.solve()
        load = tuple((kind, round(count)) for kind, count in zip(self.kinds, solved.values, strict=True) if count > 0.5)
        worth = sum(gains[self.kinds.index(kind)] * count for kind, count in load)
        return Best(load, worth, max(worth, int(solved.reach * 1e6) + 2))

    def _gains(self, prices: list[int]) -> list[int]:
        soft = self.problem.soft
        return [max(0, prices[kind] - soft[kind][self.number]) for kind in self.kinds]
