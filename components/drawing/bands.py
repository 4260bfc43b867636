"""The positions of a band's cards, header and taps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.drawing.cards import Band, Card
from components.drawing.lanes import Tap
from components.drawing.shapes import Box, Group, Text, width_of, wrap

STRIP = 236.0
"""Width at the left of a band for the labels of its connections: 32 characters in a line."""
_TAP = 18.0
PAD, GAP = 10.0, 16.0
LINE = 15.0
INSET = 8.0
"""Distance of text from the left and the right edge of its card."""
_CELL_WIDTH = 92.0
_GRID_WIDTH = 250.0
_TITLE = 18.0
"""Distance of a title's baseline from the upper edge of its band."""
_UNDER = 16.0
"""Distance of the first label or card from the baseline of the header's last line."""


@dataclass(frozen=True)
class Columns:
    """The area for cards: zones side by side."""

    x: float
    width: float
    zones: tuple[str, ...]

    @property
    def zone_width(self) -> float:
        return self.width / len(self.zones)

    def of(self, zone: str) -> float:
        return self.x + self.zones.index(zone) * self.zone_width


@dataclass(frozen=True)
class Placed:
    """A band with its position.

    inward: line -> its tap at the left of the band. outward: line to the services -> its tap at the right.
    cards: card -> its box.
    """

    band: Band
    box: Box
    groups: tuple[Group, ...]
    inward: dict[str, Tap]
    outward: dict[str, Tap]
    cards: dict[str, Box]


@dataclass(frozen=True)
class Meeting:
    """An arrow that ends or starts at a band, and its label."""

    arrow: str
    label: str
    incoming: bool


@dataclass(frozen=True)
class _Label:
    """The label of a meeting, in lines. y: the height of its tap."""

    meeting: Meeting
    y: float
    lines: tuple[str, ...]

    @property
    def bottom(self) -> float:
        return self.y + _TAP / 2 + LINE * (len(self.lines) - 1)


def place(band: Band, x: float, y: float, columns: Columns, left: Sequence[Meeting], right: Sequence[str]) -> Placed:
    """Place a band with its upper left corner at (x, y). right: the arrows from it to the services."""
    width = columns.x + columns.width + PAD - x
    header = _header(band, x, y, width)
    body = header[-1].y + _UNDER
    labels = tuple(_labels(left, body))
    cards, end = _cards(band, columns, body)
    height = max(end, body + _TAP * len(right), *(label.bottom for label in labels)) + PAD - y
    taps = {label.meeting.arrow: Tap(label.y, label.meeting.incoming) for label in labels}
    # Multiples of eight: taps at the services are at a multiple of eight less four, so no two share a height.
    outward = {name: Tap(_eight(body + _TAP * (n + 0.5)), False) for n, name in enumerate(right)}
    box = Box(x, y, width, height, f"band {band.kind}")
    texts = tuple(text for label in labels for text in _texts(label, x + PAD))
    own = Group(f"band-{band.id}", "part", f"{band.title}: {band.facts}", (box, *header, *texts))
    groups = (own, *(_drawn(card, cards[card.id], band) for card in band.cards))
    return Placed(band, box, groups, taps, outward, cards)


def _kind(meeting: Meeting) -> str:
    return "port" if meeting.incoming else "note"


def _eight(y: float) -> float:
    return round(y / 8) * 8.0


def _labels(meetings: Sequence[Meeting], y: float) -> Iterator[_Label]:
    """Yield the labels from top to bottom. One that is too long for a line has a line for each protocol."""
    room = STRIP - 2 * PAD
    for meeting in meetings:
        kind = _kind(meeting)
        is_short = width_of(meeting.label, kind) <= room
        parts = [meeting.label] if is_short else re.split("(?<=;) ", meeting.label)
        label = _Label(meeting, y + _TAP / 2, tuple(line for part in parts for line in wrap(part, kind, room)))
        yield label
        y = label.bottom


def _texts(label: _Label, x: float) -> Iterator[Text]:
    kind = _kind(label.meeting)
    return (Text(x, label.y + 4 + LINE * n, line, kind) for n, line in enumerate(label.lines))


def _header(band: Band, x: float, y: float, width: float) -> tuple[Text, ...]:
    room = width - 2 * PAD
    lines = [(line, "title") for line in wrap(band.title, "title", room)]
    lines += [(line, "fact") for line in wrap(band.facts, "fact", room)]
    return tuple(Text(x + PAD, y + _TITLE + LINE * n, line, kind) for n, (line, kind) in enumerate(lines))


def _cards(band: Band, columns: Columns, y: float) -> tuple[dict[str, Box], float]:
    """Return card -> its box, and the lower edge of the lowest."""
    if not band.cards:
        return {}, y
    placed = dict(_in_zones(band, columns, y) if band.cards[0].zone is not None else _in_grid(band, columns, y))
    return placed, max(box.y + box.height for box in placed.values())


def _in_zones(band: Band, columns: Columns, y: float) -> Iterator[tuple[str, Box]]:
    width = columns.zone_width - 12
    height = max(_height(card, width) for card in band.cards)
    filled = dict.fromkeys(columns.zones, 0)
    for card in band.cards:
        assert card.zone is not None
        top = y + filled[card.zone] * (height + 6)
        filled[card.zone] += 1
        yield card.id, Box(columns.of(card.zone) + 6, top, width, height, f"card {band.kind}")


def _in_grid(band: Band, columns: Columns, y: float) -> Iterator[tuple[str, Box]]:
    most = max(int(columns.width // (_cell_width(band) if band.cells else _GRID_WIDTH)), 1)
    rows = -(-len(band.cards) // most)
    per_row = -(-len(band.cards) // rows)
    width = columns.width / per_row
    for start in range(0, len(band.cards), per_row):
        row = band.cards[start : start + per_row]
        height = max(_height(card, width - 6) for card in row)
        for n, card in enumerate(row):
            yield card.id, Box(columns.x + n * width + 3, y, width - 6, height, f"card {band.kind}")
        y += height + 6


def _cell_width(band: Band) -> float:
    return min(max(_CELL_WIDTH, *(width_of(card.name, "name") + 24 for card in band.cards)), _GRID_WIDTH)


def card_lines(card: Card, width: float) -> tuple[tuple[str, str], ...]:
    """Return (line, kind) of a card's text, for a card of that width."""
    room = width - 2 * INSET
    texts = ((card.name, "name"), *((line, "fact") for line in card.lines))
    return tuple((line, kind) for text, kind in texts for line in wrap(text, kind, room))


def _height(card: Card, width: float) -> float:
    return LINE * len(card_lines(card, width)) + 10


def _drawn(card: Card, box: Box, band: Band) -> Group:
    texts = (
        Text(box.x + INSET, box.y + 17 + LINE * n, line, kind)
        for n, (line, kind) in enumerate(card_lines(card, box.width))
    )
    about = ", ".join(filter(None, (card.name, *card.lines, card.about, band.title)))
    return Group(card.id, "part", about, (box, *texts))
