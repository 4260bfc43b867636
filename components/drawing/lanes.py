"""Vertical lines next to the bands: each line runs in a lane and is joined to its bands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.drawing.shapes import Dot, Group, Line, Shape

LANE = 14.0
"""Pixels between lanes."""
_APART = 8.0
"""Pixels between two lines that share a lane."""


@dataclass(frozen=True)
class Tap:
    """The point where a lane meets a box. incoming: whether an arrow ends here."""

    y: float
    incoming: bool


@dataclass(frozen=True)
class Lane:
    """The lane of a line. number: its position, 0 is next to the boxes. top, bottom: its extent."""

    number: int
    top: float
    bottom: float


def assign(taps: Mapping[str, Sequence[Tap]]) -> dict[str, Lane]:
    """Return line -> its lane. The shortest are nearest to the boxes. Lines share a lane if both have room."""
    reach = {name: (min(tap.y for tap in own), max(tap.y for tap in own)) for name, own in taps.items()}
    taken: list[list[tuple[float, float]]] = []
    lanes = {}
    for name in sorted(reach, key=lambda name: (reach[name][1] - reach[name][0], name)):
        top, bottom = reach[name]
        number = next((n for n, row in enumerate(taken) if _is_free(row, top, bottom)), len(taken))
        taken += [[]] * (number == len(taken))
        taken[number] = [*taken[number], (top, bottom)]
        lanes[name] = Lane(number, top, bottom)
    return lanes


def _is_free(row: Iterable[tuple[float, float]], top: float, bottom: float) -> bool:
    return all(bottom + _APART < high or top > low + _APART for high, low in row)


def width(lanes: Iterable[Lane]) -> float:
    """Return the width in pixels that the lanes need."""
    return LANE * (2 + max((lane.number for lane in lanes), default=-1))


def line(name: str, kind: str, about: str, lane: Lane, at: float, taps: Iterable[tuple[Tap, float]]) -> Group:
    """Draw a lane at x = `at`, joined to every tap. taps: each with its x."""
    shapes: list[Shape] = [Line(((at, lane.top), (at, lane.bottom)))]
    for tap, x in taps:
        shapes.append(Line(((at, tap.y), (x, tap.y)), tap.incoming))
        if lane.top < tap.y < lane.bottom:
            shapes.append(Dot(at, tap.y))
    return Group(name, f"flow to-{kind}", about, tuple(shapes))
