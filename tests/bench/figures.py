"""Arithmetic of the bench: figures with aims, ratios of paired rounds, a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """One measured quantity, with a value per measurement.

    aim: upper limit for the median, None without an aim. note: how it was measured.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    aim: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"{self.name}: nothing was measured")

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median is within the aim; None without an aim."""
        return None if self.aim is None else self.median <= self.aim

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "values": list(self.values),
            "aim": self.aim,
            "met": self.met,
            "note": self.note,
        }


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Return the quotient of each round's pair. ValueError if the rounds do not pair up or took no time."""
    if len(ours) != len(theirs) or any(value <= 0 for value in theirs):
        raise ValueError(f"{list(ours)} and {list(theirs)} are not pairs of durations")
    return tuple(our / their for our, their in zip(ours, theirs, strict=True))


def number(value: float) -> str:
    """Format a number with three significant digits; from 100 on, as a whole number."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as text in columns: median, all values, aim, and whether it was met."""
    head = ("measured", "median", "each time", "aim", "")
    rows = [head, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [_line(row, widths) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _row(figure: Figure) -> tuple[str, ...]:
    unit = f" {figure.unit}" if figure.unit else ""
    values = "  ".join(map(number, figure.values)) if len(figure.values) > 1 else ""
    aim = "" if figure.aim is None else f"<= {number(figure.aim)}{unit}"
    verdict = {None: "", True: "met", False: "MISSED"}[figure.met]
    return (figure.name, f"{number(figure.median)}{unit}", values, aim, verdict)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
