"""What the table must be like, from the host's settings. Pure."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any, NamedTuple

from . import CLASSES, Refused

STORAGE = "storage"
"""Ranges at sites with Ceph: of the class ceph at Ceph's ports, otherwise of the class site."""
FORMAT = 1
"""Raised when the rules change, so that a table of an earlier release is replaced."""
_RANGES = (*CLASSES[:-1], STORAGE)
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


class Interval(NamedTuple):
    """Addresses of a class, or of `STORAGE`, as numbers, `last` included."""

    first: int
    last: int
    of: str


class Plan(NamedTuple):
    """interfaces: of pods, with a * at the end or without. ports: of Ceph over TCP, first and last."""

    ranges: list[Interval]
    interfaces: list[str]
    ports: list[tuple[int, int]]

    def digest(self) -> str:
        """Return a word for this plan: a table with another one is replaced."""
        return hashlib.sha256(json.dumps([FORMAT, *self]).encode()).hexdigest()[:16]


def planned(given: Mapping[str, Any]) -> Plan:
    """Return the plan of the settings. Refused with what is wrong."""
    return Plan(intervals(given["classes"]), list(given["interfaces"]), ports(given["ceph_ports"]))


def ports(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Return spans of ports: "3300", "6800-7568"."""
    spans = []
    for text in texts:
        match = _PORTS.fullmatch(text)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 0 < first <= last < 1 << 16:
            raise Refused(f"traffic_ceph_ports: {text!r} is no port and no range of ports such as 6800-7568")
        spans.append((first, last))
    return spans


def intervals(classes: Mapping[str, Sequence[str]]) -> list[Interval]:
    """Return all ranges in order. Refused for an unknown class, for what is no range, and for overlaps of classes."""
    every = []
    for name, ranges in classes.items():
        if name not in _RANGES:
            raise Refused(f"traffic_classes: no class is called {name}; there are {', '.join(_RANGES)}")
        for each in ranges:
            try:
                network = IPv4Network(each)
            except ValueError as error:
                raise Refused(f"traffic_classes.{name}: {error}; write a range such as 10.0.0.0/8") from None
            every.append(Interval(int(network[0]), int(network[-1]), name))
    every.sort()
    for one, other in itertools.pairwise(every):
        if other.first <= one.last:
            raise Refused(
                f"traffic_classes: {IPv4Address(other.first)} is in ranges of {one.of} and of {other.of}; an address "
                "belongs to one class: remove it from the other"
            )
    return every
