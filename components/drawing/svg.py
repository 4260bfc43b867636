"""A drawing as self-contained SVG: no script, nothing loaded, readable on light and dark screens."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from components.drawing.shapes import SIZES, Badge, Box, Dot, Drawing, Group, Line, Shape, Text
from components.drawing.style import SVG_STYLE

_NAMESPACE = "http://www.w3.org/2000/svg"


def svg(drawing: Drawing, *, styled: bool = True) -> str:
    """Return the text of an SVG file. styled: False for a page that has `SVG_STYLE` in its own style sheet."""
    root = _root(drawing, styled)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _root(drawing: Drawing, styled: bool) -> ET.Element:
    width, height = _number(drawing.width), _number(drawing.height)
    root = ET.Element(
        "svg",
        {
            "xmlns": _NAMESPACE,
            "viewBox": f"0 0 {width} {height}",
            "width": width,
            "height": height,
            # Lets a screen reader walk through the parts, which role="img" would hide.
            "role": "graphics-document document",
            "aria-labelledby": "drawing-title drawing-about",
        },
    )
    ET.SubElement(root, "title", {"id": "drawing-title"}).text = drawing.title
    ET.SubElement(root, "desc", {"id": "drawing-about"}).text = drawing.about
    if styled:
        ET.SubElement(root, "style").text = SVG_STYLE
    head = {"id": "head", "viewBox": "0 0 8 8", "refX": "7.5", "refY": "4", "markerWidth": "11", "markerHeight": "11"}
    marker = ET.SubElement(
        ET.SubElement(root, "defs"), "marker", {**head, "markerUnits": "userSpaceOnUse", "orient": "auto"}
    )
    ET.SubElement(marker, "path", {"d": "M0 0L8 4L0 8z", "class": "head"})
    ET.SubElement(root, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    for group in drawing.groups:
        _group(root, group)
    return root


def _group(root: ET.Element, group: Group) -> None:
    element = ET.SubElement(root, "g", {"id": group.id, "class": group.kind, "role": "group"})
    ET.SubElement(element, "title").text = group.about
    for shape in group.shapes:
        _shape(element, shape)


def _shape(parent: ET.Element, shape: Shape) -> None:
    match shape:
        case Box():
            place = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
            numbers = {name: _number(value) for name, value in place.items()}
            ET.SubElement(parent, "rect", {"class": shape.kind, **numbers, "rx": "5"})
        case Text():
            at = {"x": _number(shape.x), "y": _number(shape.y), "class": shape.kind}
            ET.SubElement(parent, "text", {**at, "font-size": _number(SIZES[shape.kind])}).text = shape.text
        case Line():
            path = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in shape.points)
            arrow = {"marker-end": "url(#head)"} if shape.arrow else {}
            ET.SubElement(parent, "path", {"class": "line", "d": path, **arrow})
        case Dot():
            ET.SubElement(
                parent, "circle", {"class": "dot", "cx": _number(shape.x), "cy": _number(shape.y), "r": "2.5"}
            )
        case Badge():
            at = {"x": _number(shape.x), "y": _number(shape.y + 3.5), "class": "mark"}
            circle = {"class": "badge", "cx": _number(shape.x), "cy": _number(shape.y), "r": "7"}
            ET.SubElement(parent, "circle", circle)
            # Its group says the same in words.
            mark = {**at, "text-anchor": "middle", "font-size": "10", "aria-hidden": "true"}
            ET.SubElement(parent, "text", mark).text = shape.mark


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
