"""The planner's interface to HiGHS: linear programs that grow by columns, and their integer versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

INFINITY = float("inf")


@dataclass(frozen=True)
class Solved:
    """A solution. duals: of rows. values: of columns. reach: bound on the objective of any integer solution."""

    objective: float
    values: list[float]
    duals: list[float]
    reach: float


class Program:
    """Minimise cost * x subject to x >= 0 and bounds on every row's sum.

    Uses one thread, so that solutions are reproducible.
    """

    def __init__(self, rows: Sequence[tuple[float, float]], *, maximise: bool = False) -> None:
        self.highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("parallel", "off"), ("random_seed", 0)):
            self.highs.setOptionValue(option, value)
        for lower, upper in rows:
            self.highs.addRow(lower, upper, 0, np.array([], dtype=np.int32), np.array([], dtype=np.float64))
        if maximise:
            self.highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.columns = 0

    def add(self, cost: float, entries: Sequence[tuple[int, float]], upper: float = INFINITY) -> int:
        """Add a column with entries (row, coefficient). Return its number."""
        rows = np.array([row for row, _ in entries], dtype=np.int32)
        values = np.array([value for _, value in entries], dtype=np.float64)
        self.highs.addCol(cost, 0.0, upper, len(entries), rows, values)
        self.columns += 1
        return self.columns - 1

    def costs(self, costs: Sequence[float]) -> None:
        every = np.arange(self.columns, dtype=np.int32)
        self.highs.changeColsCost(self.columns, every, np.array(costs, dtype=np.float64))

    def bounds(self, uppers: Sequence[float]) -> None:
        every = np.arange(self.columns, dtype=np.int32)
        self.highs.changeColsBounds(self.columns, every, np.zeros(self.columns), np.array(uppers, dtype=np.float64))

    def solve(self) -> Solved:
        self.highs.run()
        solution, info = self.highs.getSolution(), self.highs.getInfo()
        values, duals = list(solution.col_value), list(solution.row_dual)
        return Solved(info.objective_function_value, values, duals, info.mip_dual_bound)

    def integral(self, gap: float) -> None:
        """Require integers from now on. gap: stop within this share of the optimum."""
        every = np.arange(self.columns, dtype=np.int32)
        kinds = np.full(self.columns, highspy.HighsVarType.kInteger.value, dtype=np.uint8)
        self.highs.changeColsIntegrality(self.columns, every, kinds)
        self.highs.setOptionValue("mip_rel_gap", gap)
        self.highs.setOptionValue("mip_abs_gap", 0.0)

    def whole(self, start: Sequence[float], gap: float, stop: Callable[[], bool], seconds: float) -> Solved:
        """Solve in integers, starting from a known solution. Stops within the gap, or when `stop` returns True.

        seconds: wall-clock limit, for phases in which `stop` isn't called.
        """
        self.integral(gap)
        self.highs.setOptionValue("time_limit", seconds)
        first = highspy.HighsSolution()
        first.col_value = list(start)
        self.highs.setSolution(first)

        def on_interrupt(event: highspy.HighsCallbackEvent) -> None:
            if event.data_in is not None and stop():
                event.data_in.user_interrupt = True

        self.highs.cbMipInterrupt += on_interrupt
        solved = self.solve()
        self.highs.cbMipInterrupt -= on_interrupt
        return solved
