"""A strict parser of ASN.1's distinguished encoding (X.690): anything unexpected is an error."""

from __future__ import annotations

from typing import Iterator, Tuple


class Malformed(ValueError):
    """Not the expected element, or not in its canonical encoding."""


Element = Tuple[int, bytes]


def walk(data: bytes) -> Iterator[Element]:
    """Yield consecutive elements: (tag, content)."""
    while data:
        if len(data) < 2:
            raise Malformed("truncated")
        tag, length, start = data[0], data[1], 2
        if length > 0x80:
            size = length & 0x7F
            start = 2 + size
            length = int.from_bytes(data[2:start], "big")
            if size > 3 or length < 0x80:
                raise Malformed("length not in its shortest form")
        if length == 0x80 and start == 2 or len(data) < start + length or tag & 0x1F == 0x1F:
            raise Malformed("not DER")
        yield tag, data[start : start + length]
        data = data[start + length :]


def elements(data: bytes, count: int) -> list[Element]:
    """Return the elements. Malformed unless there are `count`."""
    parsed = list(walk(data))
    if len(parsed) != count:
        raise Malformed(f"{len(parsed)} elements instead of {count}")
    return parsed


def expect(element: Element, tag: int) -> bytes:
    """Return the content of an element with that tag. Malformed if it has another."""
    if element[0] != tag:
        raise Malformed(f"type {element[0]:#x} instead of {tag:#x}")
    return element[1]
