"""Where the shapes of a drawing are, as a browser shows them at most."""

from __future__ import annotations

from itertools import combinations

from cli.drawing.shapes import ADVANCE, SIZES, Box, Line, Text

Area = tuple[float, float, float, float]


def area(shape) -> Area:
    """Left, top, right and bottom. Letters reach at most 0.8 ems up and 0.25 down."""
    if isinstance(shape, Text):
        size = SIZES[shape.kind]
        return (shape.x, shape.y - 0.8 * size, shape.x + ADVANCE * size * len(shape.text), shape.y + 0.25 * size)
    if isinstance(shape, Box):
        return (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
    (xs, ys) = zip(*shape.points, strict=True)
    return (min(xs), min(ys), max(xs), max(ys))


def meet(one: Area, other: Area) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def within(one: Area, other: Area) -> bool:
    return one[0] >= other[0] and one[1] >= other[1] and one[2] <= other[2] and one[3] <= other[3]


def overlaps(drawing) -> list[tuple[str, str]]:
    """Text over text, lines through text, and cards over text that isn't theirs: there must be none."""
    texts = [shape for shape in drawing.shapes() if isinstance(shape, Text)]
    straight = [shape for shape in drawing.shapes() if isinstance(shape, Line) and is_straight(shape)]
    cards = [(g.shapes, shape) for g in drawing.groups for shape in g.shapes if _is_card(shape)]
    found = [(t.text, str(c)) for own, c in cards for t in texts if t not in own and meet(area(t), area(c))]
    found += [(one.text, other.text) for one, other in combinations(texts, 2) if meet(area(one), area(other))]
    return found + [
        (text.text, str(line.points)) for text in texts for line in straight if meet(area(text), area(line))
    ]


def is_straight(line: Line) -> bool:
    """Upright or level; tunnels are neither, and stay between the gateway and the routers."""
    (x1, y1), (x2, y2) = line.points
    return x1 == x2 or y1 == y2


def _is_card(shape: object) -> bool:
    return isinstance(shape, Box) and shape.kind.startswith("card")
