"""Finds the most valuable load of a bin at given prices: first quickly, then with proof."""

from __future__ import annotations

from controllers.planner.certificate import Bin, Relaxed
from controllers.planner.knapsack import UNIT, Best, Search
from controllers.planner.lp import INFINITY, Program

NODES = 300
"""Nodes of a quick search for a better load, before an integer program looks for one."""
NEAR = 3e-5
"""How near to the optimum the integer program comes, as a share of a load's worth."""


class Pricing:
    """Finds the most valuable load of a bin at given prices. It is called repeatedly, so it keeps one small program warm."""

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
        """Return a good load quickly, with a bound that may be far from it."""
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
        """Return the best load, with a bound that is equal except for the solver's last digits."""
        gains = self._gains(prices)
        if not any(gains):
            return Best((), 0, 0)
        if self.whole is None:
            self.whole = self._program()
            self.whole.integral(NEAR)
        self.whole.costs([gain / 1e6 for gain in gains])
        solved = self.whole.solve()
        load = tuple((kind, round(count)) for kind, count in zip(self.kinds, solved.values, strict=True) if count > 0.5)
        worth = sum(gains[self.kinds.index(kind)] * count for kind, count in load)
        return Best(load, worth, max(worth, int(solved.reach * 1e6) + 2))

    def _gains(self, prices: list[int]) -> list[int]:
        soft = self.problem.soft
        return [max(0, prices[kind] - soft[kind][self.number]) for kind in self.kinds]
