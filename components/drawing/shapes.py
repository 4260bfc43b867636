"""The shapes of drawings, in pixels from the upper left corner, and the width of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

ADVANCE = 0.61
"""Width of a character in ems. Common fixed-width fonts have 0.55 to 0.602 in every weight (Consolas, Menlo,
DejaVu Sans Mono, Courier New), so text fits with any of them."""
SIZES = {"heading": 17.0, "title": 13.5, "name": 12.0, "fact": 11.0, "note": 11.0, "port": 11.0, "zone": 12.0}
"""Kind of text -> pixels."""


@dataclass(frozen=True)
class Text:
    """One line of text. y: its baseline. kind: a key of `SIZES`."""

    x: float
    y: float
    text: str
    kind: str

    @property
    def width(self) -> float:
        return width_of(self.text, self.kind)


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True)
class Line:
    """A line through points. arrow: whether its end has a head."""

    points: tuple[tuple[float, float], ...]
    arrow: bool = False


@dataclass(frozen=True)
class Dot:
    """The mark of a junction of lines, to tell it from a crossing."""

    x: float
    y: float


@dataclass(frozen=True)
class Badge:
    """A disc with one character, centred at a point."""

    x: float
    y: float
    mark: str


Shape = Text | Box | Line | Dot | Badge


@dataclass(frozen=True)
class Group:
    """The shapes of one thing. id: unique in the drawing. about: the text that a pointer over it shows."""

    id: str
    kind: str
    about: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Drawing:
    """Groups from back to front. about: the whole drawing in words, for screen readers."""

    width: float
    height: float
    title: str
    about: str
    groups: tuple[Group, ...]

    def shapes(self) -> Iterator[Shape]:
        return (shape for group in self.groups for shape in group.shapes)


def width_of(text: str, kind: str) -> float:
    """Return an upper bound of the text's width in pixels."""
    return len(text) * ADVANCE * SIZES[kind]


def fit(text: str, kind: str, room: float) -> str:
    """Return the text, cut with an ellipsis if it is wider than `room`."""
    length = max(int(room / (ADVANCE * SIZES[kind])), 1)
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def wrap(text: str, kind: str, room: float) -> tuple[str, ...]:
    """Wrap the text into lines no wider than `room`. A longer word continues on the next line."""
    length = max(int(room / (ADVANCE * SIZES[kind])), 1)
    return tuple(line.rstrip() for line in textwrap.wrap(text, length, break_on_hyphens=False)) or ("",)
