"""A strict reader of ASN.1's distinguished encoding (X.690): whatever it does not expect is an error."""

from __future__ import annotations

from typing import Iterator, Tuple


class Malformed(ValueError):
    """Not what belongs there, or not in its one encoding."""


Element = Tuple[int, bytes]


def walk(data: bytes) -> Iterator[Element]:
    """The elements that stand one after another: (tag, content)."""
    while data:
        if len(data) < 2:
            raise Malformed("cut off")
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
    """As many as are expected there."""
    found = list(walk(data))
    if len(found) != count:
        raise Malformed(f"{len(found)} parts where {count} belong")
    return found


def expect(element: Element, tag: int) -> bytes:
    """The content of an element of that tag."""
    if element[0] != tag:
        raise Malformed(f"type {element[0]:#x} where {tag:#x} belongs")
    return element[1]
