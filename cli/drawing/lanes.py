"""Lines beside the bands: each has a lane of its own, which those it concerns are joined to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cli.drawing.shapes import Dot, Group, Line, Shape

LANE = 14.0
"""Pixels from lane to lane."""
_APART = 8.0
"""Pixels between two lines that share a lane."""


@dataclass(frozen=True)
class Tap:
    """Where a lane meets a box. incoming: an arrow ends here."""

    y: float
    incoming: bool


@dataclass(frozen=True)
class Lane:
    """The lane of one line. number: its place, from 0 beside the boxes. top, bottom: how far it reaches."""

    number: int
    top: float
    bottom: float


def assign(taps: Mapping[str, Sequence[Tap]]) -> dict[str, Lane]:
    """Line -> its lane: the shortest stand nearest to the boxes, and two share a lane where both have room."""
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
    """Pixels that the lanes need beside the boxes."""
    return LANE * (2 + max((lane.number for lane in lanes), default=-1))


def line(name: str, kind: str, about: str, lane: Lane, at: float, taps: Iterable[tuple[Tap, float]]) -> Group:
    """A lane at x = `at`, joined to every tap, which is at the x beside it."""
    shapes: list[Shape] = [Line(((at, lane.top), (at, lane.bottom)))]
    for tap, x in taps:
        shapes.append(Line(((at, tap.y), (x, tap.y)), tap.incoming))
        if lane.top < tap.y < lane.bottom:
            shapes.append(Dot(at, tap.y))
    return Group(name, f"flow to-{kind}", about, tuple(shapes))
