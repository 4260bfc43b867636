"""HiGHS, as the planner uses it: linear programs that grow by columns, and the whole-number ones made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

INFINITY = float("inf")


@dataclass(frozen=True)
class Solved:
    """duals: of rows. values: of columns. reach: no whole-number answer is better than that."""

    objective: float
    values: list[float]
    duals: list[float]
    reach: float


class Program:
    """Minimise cost * x where x >= 0 and every row's sum lies between its bounds.

    One thread, so that the answer is always the same.
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
        """A column with its entries (row, coefficient); its number."""
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
        """From now on in whole numbers only, and ended when within the gap, a share of the answer."""
        every = np.arange(self.columns, dtype=np.int32)
        kinds = np.full(self.columns, highspy.HighsVarType.kInteger.value, dtype=np.uint8)
        self.highs.changeColsIntegrality(self.columns, every, kinds)
        self.highs.setOptionValue("mip_rel_gap", gap)
        self.highs.setOptionValue("mip_abs_gap", 0.0)

    def whole(self, start: Sequence[float], gap: float, stop: Callable[[], bool], seconds: float) -> Solved:
        """The same with whole numbers only, from a known answer; ends by itself within the gap, or when `stop` says so.

        seconds: a limit on the wall's clock, for the phases in which `stop` isn't asked.
        """
        self.integral(gap)
        self.highs.setOptionValue("time_limit", seconds)
        known = highspy.HighsSolution()
        known.col_value = list(start)
        self.highs.setSolution(known)

        def asked(event: highspy.HighsCallbackEvent) -> None:
            if event.data_in is not None and stop():
                event.data_in.user_interrupt = True

        self.highs.cbMipInterrupt += asked
        solved = self.solve()
        self.highs.cbMipInterrupt -= asked
        return solved
