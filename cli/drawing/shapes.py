"""What drawings are made of, in pixels from the upper left corner, and how much room text takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ADVANCE = 0.61
"""Width of a character in ems. The common fixed-width fonts have 0.55 to 0.602 in every weight (Consolas, Menlo,
DejaVu Sans Mono, Courier New); so text has its place whichever of them the reader's machine has."""
SIZES = {"heading": 17.0, "title": 13.5, "name": 12.0, "fact": 11.0, "note": 11.0, "port": 11.0, "zone": 12.0}
"""Kind of text -> pixels."""


@dataclass(frozen=True)
class Text:
    """One line. y: of its baseline. kind: of `SIZES`."""

    x: float
    y: float
    text: str
    kind: str

    @property
    def width(self) -> float:
        return width_of(self.text, self.kind)


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True)
class Line:
    """Straight stretches from point to point. arrow: whether its end has a head."""

    points: tuple[tuple[float, float], ...]
    arrow: bool = False


@dataclass(frozen=True)
class Dot:
    """Where a line joins another, so that it doesn't look like a crossing."""

    x: float
    y: float


Shape = Text | Box | Line | Dot


@dataclass(frozen=True)
class Group:
    """Shapes that stand for one thing. id: unique in the drawing. about: what a reader is told who points at it."""

    id: str
    kind: str
    about: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Drawing:
    """Groups from back to front. about: all of it in words, for those who don't see it."""

    width: float
    height: float
    title: str
    about: str
    groups: tuple[Group, ...]

    def shapes(self) -> Iterator[Shape]:
        return (shape for group in self.groups for shape in group.shapes)


def width_of(text: str, kind: str) -> float:
    """At most so many pixels."""
    return len(text) * ADVANCE * SIZES[kind]


def fit(text: str, kind: str, room: float) -> str:
    """The text, or as much of its beginning as there is room for."""
    most = max(int(room / (ADVANCE * SIZES[kind])), 1)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def wrap(text: str, kind: str, room: float) -> tuple[str, ...]:
    """The text in lines that there is room for, cut where one word is too long."""
    most = max(int(room / (ADVANCE * SIZES[kind])), 1)
    lines = [""]
    for word in text.split(" "):
        if not lines[-1]:
            lines[-1] = word
        elif len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return tuple(fit(line, kind, room) for line in lines)
