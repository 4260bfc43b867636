"""The areas of a drawing's shapes, as large as any browser shows them."""

from __future__ import annotations

from itertools import combinations

from components.drawing.shapes import ADVANCE, SIZES, Box, Line, Text

Area = tuple[float, float, float, float]


def area(shape) -> Area:
    """Return left, top, right and bottom. Letters reach at most 0.8 ems up and 0.25 down."""
    if isinstance(shape, Text):
        size = SIZES[shape.kind]
        return (shape.x, shape.y - 0.8 * size, shape.x + ADVANCE * size * len(shape.text), shape.y + 0.25 * size)
    if isinstance(shape, Box):
        return (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
    (xs, ys) = zip(*shape.points, strict=True)
    return (min(xs), min(ys), max(xs), max(ys))


def meet(first: Area, second: Area) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def within(inner: Area, outer: Area) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def overlaps(drawing) -> list[tuple[str, str]]:
    """Return text over text, lines through text, and cards over other cards' text. There must be none."""
    texts = [shape for shape in drawing.shapes() if isinstance(shape, Text)]
    straight = [shape for shape in drawing.shapes() if isinstance(shape, Line) and is_straight(shape)]
    cards = [(g.shapes, shape) for g in drawing.groups for shape in g.shapes if _is_card(shape)]
    pairs = [(t.text, str(c)) for own, c in cards for t in texts if t not in own and meet(area(t), area(c))]
    pairs += [(first.text, second.text) for first, second in combinations(texts, 2) if meet(area(first), area(second))]
    return pairs + [
        (text.text, str(line.points)) for text in texts for line in straight if meet(area(text), area(line))
    ]


def is_straight(line: Line) -> bool:
    """Return whether a line is vertical or horizontal. Tunnels are neither, and stay between the gateway and the routers."""
    (x1, y1), (x2, y2) = line.points
    return x1 == x2 or y1 == y2


def _is_card(shape: object) -> bool:
    return isinstance(shape, Box) and shape.kind.startswith("card")
