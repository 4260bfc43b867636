"""The services around the cluster, at the right of its drawing, and the lines that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from components.drawing import lanes
from components.drawing.arrows import Arrow
from components.drawing.bands import INSET, LINE, PAD, Placed, card_lines
from components.drawing.cards import Card
from components.drawing.lanes import LANE, Tap
from components.drawing.shapes import Box, Group, Text, wrap
from components.drawing.traffic import Shared, Traffic, kind_of
from components.flows.flow import Role

_WIDTH = 230.0
_CARD_WIDTH = _WIDTH - 2 * PAD
_HEAD = 40.0
_INLET = 20.0
"""Distance of an arrow's head from the upper edge of its card."""


class Services:
    """Cards and lines. edge: the right edge of the region's box; bands end `PAD` before it. top: the upper edge of the box."""

    def __init__(
        self, placed: Sequence[Placed], traffic: Traffic, cards: dict[Role, Card], edge: float, top: float
    ) -> None:
        self._around, self._cards = traffic.around, cards
        self._edge, self._top = edge, top
        self._inlets: dict[Role, float] = {}
        self.bottom = self._place_inlets(top + _HEAD)
        self._taps = {shared.id: self._taps_of(shared, placed) for shared in self._around}
        self._lanes = lanes.assign(self._taps)
        self._x = edge + PAD + lanes.width(self._lanes.values())
        self.right = self._x - PAD + _WIDTH

    def _place_inlets(self, y: float) -> float:
        """Set the heights of the arrows' heads. Lines from bands never share one: they are at multiples of eight."""
        for arrow in (arrow for shared in self._around for arrow in shared.arrows):
            inlet = y + _INLET + (4 - y - _INLET) % 8
            self._inlets[arrow.destination] = inlet
            y = inlet - _INLET + _height(self._cards[arrow.destination], arrow) + PAD
        return y

    def _taps_of(self, shared: Shared, placed: Sequence[Placed]) -> list[Tap]:
        own = [band.outward[shared.id] for band in placed if shared.id in band.outward]
        return own + [Tap(self._inlets[arrow.destination], True) for arrow in shared.arrows]

    def boxes(self) -> Iterator[Group]:
        box = Box(self._x - PAD, self._top, _WIDTH, self.bottom - self._top, "place")
        name = Text(self._x, self._top + 22, "Around the cluster", "title")
        yield Group("around", "part", "Services around the cluster, which are not part of it", (box, name))
        for shared in self._around:
            for arrow in shared.arrows:
                yield self._card(self._cards[arrow.destination], arrow)

    def _card(self, card: Card, arrow: Arrow) -> Group:
        y = self._inlets[arrow.destination] - _INLET
        texts = (
            Text(self._x + INSET, y + 17 + LINE * n, line, kind) for n, (line, kind) in enumerate(_lines(card, arrow))
        )
        box = Box(self._x, y, _CARD_WIDTH, _height(card, arrow), "card outside")
        about = ", ".join((card.name, *card.lines, arrow.ports))
        return Group(f"service-{card.id}", "part", f"{about}. {arrow.about}", (box, *texts))

    def lines(self) -> Iterator[Group]:
        for shared in self._around:
            lane = self._lanes[shared.id]
            about = " ".join(arrow.about for arrow in shared.arrows)
            at = self._edge + LANE * (lane.number + 1)
            taps = [(tap, self._x if tap.incoming else self._edge - PAD) for tap in self._taps[shared.id]]
            yield lanes.line(shared.id, kind_of(shared.arrows[0].destination), about, lane, at, taps)


def _lines(card: Card, arrow: Arrow) -> tuple[tuple[str, str], ...]:
    """Return (line, kind) of a service's card: its own, and the ports that it accepts."""
    ports = wrap(arrow.ports, "port", _CARD_WIDTH - 2 * INSET)
    return (*card_lines(card, _CARD_WIDTH), *((line, "port") for line in ports))


def _height(card: Card, arrow: Arrow) -> float:
    return LINE * len(_lines(card, arrow)) + 10
