"""The positions of a band's cards, header and taps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.drawing.cards import Band, Card
from cli.drawing.lanes import Tap
from cli.drawing.shapes import Box, Group, Shape, Text, fit, width_of, wrap

STRIP = 212.0
"""Width at the left of a band for the labels of its connections."""
_TAP = 18.0
PAD, GAP = 10.0, 16.0
_LINE = 15.0
_CELL_WIDTH, _CELL_HEIGHT = 92.0, 40.0
_GRID_WIDTH = 250.0
_HEAD = 24.0


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


def place(band: Band, x: float, y: float, columns: Columns, left: Sequence[Meeting], right: Sequence[str]) -> Placed:
    """Place a band with its upper left corner at (x, y). right: the arrows from it to the services."""
    width = columns.x + columns.width + PAD - x
    header = _header(band, x, y, width)
    body = y + _HEAD + _LINE * (len(header) - 1) + PAD
    cards, end = _cards(band, columns, body)
    height = max(end, body + _TAP * max(len(left), len(right))) + PAD - y
    taps = {meeting.arrow: Tap(body + _TAP * (n + 0.5), meeting.incoming) for n, meeting in enumerate(left)}
    # Multiples of eight: taps at the services are at a multiple of eight less four, so no two share a height.
    outward = {name: Tap(_eight(body + _TAP * (n + 0.5)), False) for n, name in enumerate(right)}
    labels = (
        Text(x + PAD, taps[meeting.arrow].y + 4, fit(meeting.label, _kind(meeting), STRIP - 2 * PAD), _kind(meeting))
        for meeting in left
    )
    box = Box(x, y, width, height, f"band {band.kind}")
    own = Group(f"band-{band.id}", "part", f"{band.title}: {band.facts}", (box, *header, *labels))
    groups = (own, *(_drawn(card, cards[card.id], band) for card in band.cards))
    return Placed(band, box, groups, taps, outward, cards)


def _kind(meeting: Meeting) -> str:
    return "port" if meeting.incoming else "note"


def _eight(y: float) -> float:
    return round(y / 8) * 8.0


def _header(band: Band, x: float, y: float, width: float) -> tuple[Shape, ...]:
    lines = wrap(band.facts, "fact", width - 2 * PAD)
    return (
        Text(x + PAD, y + 18, fit(band.title, "title", width - 2 * PAD), "title"),
        *(Text(x + PAD, y + 18 + _LINE * (n + 1), line, "fact") for n, line in enumerate(lines)),
    )


def _cards(band: Band, columns: Columns, y: float) -> tuple[dict[str, Box], float]:
    """Return card -> its box, and the lower edge of the lowest."""
    if not band.cards:
        return {}, y
    placed = dict(_in_zones(band, columns, y) if band.cards[0].zone is not None else _in_grid(band, columns, y))
    return placed, max(box.y + box.height for box in placed.values())


def _in_zones(band: Band, columns: Columns, y: float) -> Iterator[tuple[str, Box]]:
    height = max(map(_height, band.cards))
    filled = dict.fromkeys(columns.zones, 0)
    for card in band.cards:
        assert card.zone is not None
        top = y + filled[card.zone] * (height + 6)
        filled[card.zone] += 1
        yield card.id, Box(columns.of(card.zone) + 6, top, columns.zone_width - 12, height, f"card {band.kind}")


def _in_grid(band: Band, columns: Columns, y: float) -> Iterator[tuple[str, Box]]:
    min_width = _cell_width(band) if band.cells else _GRID_WIDTH
    per_row = max(min(int(columns.width // min_width), len(band.cards)), 1)
    width = columns.width / (int(columns.width // min_width) if band.cells else per_row)
    for start in range(0, len(band.cards), per_row):
        row = band.cards[start : start + per_row]
        height = _CELL_HEIGHT if band.cells else max(map(_height, row))
        for n, card in enumerate(row):
            yield card.id, Box(columns.x + n * width + 3, y, width - 6, height, f"card {band.kind}")
        y += height + 6


def _cell_width(band: Band) -> float:
    return min(max(_CELL_WIDTH, *(width_of(card.name, "name") + 24 for card in band.cards)), _GRID_WIDTH)


def _height(card: Card) -> float:
    return _LINE * (1 + len(card.lines)) + 10


def _drawn(card: Card, box: Box, band: Band) -> Group:
    room = box.width - 2 * 8
    lines = (
        Text(box.x + 8, box.y + 17 + _LINE * (n + 1), fit(line, "fact", room), "fact")
        for n, line in enumerate(card.lines)
    )
    about = ", ".join(filter(None, (card.name, *card.lines, card.about, band.title)))
    return Group(
        card.id, "part", about, (box, Text(box.x + 8, box.y + 17, fit(card.name, "name", room), "name"), *lines)
    )
