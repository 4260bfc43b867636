"""Where the parts of a bill's drawings are: a bar of the uses, and a column for each day. Pure; templates write them as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from controllers.metering.amounts import percent, widths
from controllers.metering.colours import css_class
from controllers.metering.facts import Use

WIDTH, BAR_HEIGHT = 960, 40
LEFT, TOP, HEIGHT, FOOT = 70, 10, 200, 24
"""Of the columns: room for the numbers of the scale, above, of the highest column, and for the days below."""
_GAP = 4
_LINES = 4
"""Lines of the scale above 0."""
_STEPS = (1, 2, 2.5, 5, 10)


class Rect(NamedTuple):
    """A rectangle. kind: its class. words: what it says."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    words: str


class Mark(NamedTuple):
    """A word at a place: of the scale with its line, or of a day."""

    at: float
    words: str


@dataclass(frozen=True)
class Columns:
    """A drawing of days. height: of all. scale: numbers by their height. labels: days by their place."""

    rects: tuple[Rect, ...]
    scale: tuple[Mark, ...]
    labels: tuple[Mark, ...]
    width: int = WIDTH
    height: int = TOP + HEIGHT + FOOT
    left: int = LEFT


def bar(shares: Mapping[Use, float]) -> tuple[Rect, ...]:
    """Return the parts of a bar of `WIDTH`, by the shares of uses."""
    rects, x = [], 0
    for use, width in widths(shares, WIDTH).items():
        rects.append(Rect(css_class(use), x, 0, width, BAR_HEIGHT, f"{use} {percent(shares[use])}"))
        x += width
    return tuple(rects)


def columns(amounts: Sequence[tuple[date, Mapping[Use, float]]], unit: str) -> Columns | None:
    """Return a column for each day, its uses from the bottom up in the order of `Use`. None if there is nothing to draw."""
    highest = max((sum(uses.values()) for _, uses in amounts), default=0.0)
    if not highest:
        return None
    step = _step(highest / _LINES)
    whole = step * -(-highest // step)
    wide = (WIDTH - LEFT) / len(amounts)
    rects = [
        rect
        for number, (day, uses) in enumerate(amounts)
        for rect in _column(LEFT + number * wide + _GAP / 2, wide - _GAP, HEIGHT / whole, day, uses, unit)
    ]
    scale = [Mark(round(TOP + HEIGHT * (1 - value / whole), 2), f"{value:,.10g}") for value in _values(step, whole)]
    labels = [Mark(round(LEFT + (number + 0.5) * wide, 2), str(day.day)) for number, (day, _) in enumerate(amounts)]
    return Columns(tuple(rects), tuple(scale), tuple(labels))


def _column(x: float, width: float, each: float, day: date, uses: Mapping[Use, float], unit: str) -> list[Rect]:
    """Return the parts of a day. each: height of one unit."""
    rects, bottom = [], float(TOP + HEIGHT)
    for use in Use:
        if amount := uses.get(use, 0.0):
            height = amount * each
            bottom -= height
            words = f"{day}: {use} {amount:,.1f} {unit}"
            rects.append(Rect(css_class(use), *(round(n, 2) for n in (x, bottom, width, height)), words))
    return rects


def _step(least: float) -> float:
    """Return a round number that is at least this: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** (len(str(int(least))) - 1) if least >= 1 else 10.0 ** -len(str(int(1 / least)))
    return next(step * power for step in _STEPS if step * power >= least)


def _values(step: float, whole: float) -> list[float]:
    return [step * number for number in range(round(whole / step) + 1)]
