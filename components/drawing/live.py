"""The state of a running cluster on its drawing: a colour, a mark and words on each part whose state is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from components.drawing.shapes import Badge, Box, Drawing, Group


class Health(StrEnum):
    """The health of one thing, or of several together."""

    HEALTHY = "healthy"
    PARTLY = "partly"
    """Some of several are down, or it works with less than it should have."""
    DOWN = "down"
    OUT = "out"
    """Out of service, because somebody took it out."""
    UNKNOWN = "unknown"


MARKS = {Health.HEALTHY: "", Health.PARTLY: "!", Health.DOWN: "×", Health.OUT: "–", Health.UNKNOWN: "?"}
"""Health -> the character on the part, so that nobody needs the colour. What is healthy has none."""
MEANINGS = {
    Health.HEALTHY: "healthy",
    Health.PARTLY: "partly down",
    Health.DOWN: "down",
    Health.OUT: "out of service",
    Health.UNKNOWN: "unknown",
}
"""Health -> its words for people."""


@dataclass(frozen=True)
class Live:
    """The state of a part. name: of the part, for people. words: the details, such as ``7 of 8 Ready``."""

    name: str
    health: Health
    words: str = ""

    @property
    def text(self) -> str:
        """``partly down: 7 of 8 Ready``."""
        meaning = MEANINGS[self.health]
        return f"{meaning}: {self.words}" if self.words else meaning


def together(healths: Collection[Health]) -> Health:
    """Return the health of several things together. Without any, it is unknown."""
    kinds = set(healths)
    if not kinds:
        return Health.UNKNOWN
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds & {Health.DOWN, Health.PARTLY}:
        return Health.PARTLY if kinds & {Health.HEALTHY, Health.PARTLY} else Health.DOWN
    return Health.UNKNOWN if Health.UNKNOWN in kinds else Health.HEALTHY


def coloured(drawing: Drawing, states: Mapping[str, Live]) -> Drawing:
    """Return the drawing with states on its groups. states: ID of a group -> its state; IDs without a group are ignored."""
    groups = (_coloured(group, states[group.id]) if group.id in states else group for group in drawing.groups)
    return replace(drawing, groups=tuple(groups))


def _coloured(group: Group, live: Live) -> Group:
    box = next((shape for shape in group.shapes if isinstance(shape, Box)), None)
    mark = MARKS[live.health]
    badge = (Badge(box.x + box.width - 2, box.y + 2, mark),) if box and mark else ()
    return Group(group.id, f"{group.kind} live-{live.health}", f"{live.text}. {group.about}", (*group.shapes, *badge))
