"""The legend of a drawing: what the colours of its lines mean, and how to read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from components.drawing.bands import LINE, PAD
from components.drawing.shapes import Box, Dot, Group, Line, Shape, Text, width_of, wrap

_MEANINGS = {
    "to-control": "to API servers and load balancers",
    "to-etcd": "to etcd",
    "to-workers": "to workers",
    "to-network": "to pods, edge routers and the VPN gateway",
    "to-outside": "to services around the cluster",
    "tunnel": "IPsec tunnel",
}
"""Kind of lines -> its meaning, in order."""
_JOINED = "lines that are joined; others only cross"
_EXPLAINED = (
    "An arrow leads from the side that opens connections to the side that accepts them, on the ports at its head."
)
_SAMPLE = 34.0
_BETWEEN = 28.0


@dataclass(frozen=True)
class Legend:
    """The groups of a legend, and its height."""

    groups: tuple[Group, ...]
    height: float


def legend(kinds: Collection[str], x: float, y: float, width: float) -> Legend:
    """Return the legend with its upper left corner at (x, y). kinds: the kinds of lines in the drawing."""
    explained = wrap(_EXPLAINED, "fact", width - 2 * PAD)
    head = (
        Text(x + PAD, y + 18, "Legend", "title"),
        *(Text(x + PAD, y + 18 + LINE * (n + 1), line, "fact") for n, line in enumerate(explained)),
    )
    entries = {kind: meaning for kind, meaning in _MEANINGS.items() if kind in kinds} | {"joined": _JOINED}
    placed = tuple(_placed(entries, x + PAD, head[-1].y + 22, x + width - PAD))
    height = placed[-1][2] + 12 - y
    box = Box(x, y, width, height, "place")
    own = Group("legend", "part", f"Legend. {_EXPLAINED}", (box, *head))
    return Legend((own, *(_entry(kind, entries[kind], left, at) for kind, left, at in placed)), height)


def _placed(entries: dict[str, str], x: float, y: float, right: float) -> Iterator[tuple[str, float, float]]:
    """Yield (kind, left edge, height of its sample) of each entry, as many in a row as fit."""
    left = x
    for kind, meaning in entries.items():
        needed = _SAMPLE + PAD + width_of(meaning, "fact")
        if left > x and left + needed > right:
            left, y = x, y + LINE + 3
        yield kind, left, y
        left += needed + _BETWEEN


def _entry(kind: str, meaning: str, x: float, y: float) -> Group:
    middle = x + _SAMPLE / 2
    crossing = Line(((middle, y - 5), (middle, y + 5)))
    sample = Line(((x, y), (x + _SAMPLE, y)), arrow=kind.startswith("to-"))
    joined: tuple[Shape, ...] = (crossing, Dot(middle, y)) if kind == "joined" else ()
    text = Text(x + _SAMPLE + PAD, y + 4, meaning, "fact")
    return Group(f"legend-{kind}", f"legend {'to-outside' if joined else kind}", meaning, (sample, *joined, text))
