"""Bytes in a bill: a row for each team, or for each namespace of the bill's team, with a column for each place of the other end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cli.views.bill.amounts import NOBODY
from controllers.metering.bill import Bill, TrafficLine

GB = 1e9
UNKNOWN = "(unknown pods)"
"""Of pods that their node did not know: nobody's."""
COLUMNS: Mapping[str, Callable[[TrafficLine], bool]] = {
    "INTERNET OUT GB": lambda line: (line.kind, line.direction) == ("internet", "out"),
    "INTERNET IN GB": lambda line: (line.kind, line.direction) == ("internet", "in"),
    "REGION GB": lambda line: line.kind == "region",
    "SITE GB": lambda line: line.kind == "site",
    "CEPH GB": lambda line: line.kind == "ceph",
    "PODS OUT GB": lambda line: (line.kind, line.direction) == ("pod", "out"),
}
"""Heading -> the bytes in it. Between pods only what is sent, because the other end counts it as received."""


def rows(bill: Bill) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a name and its cells, the largest first."""
    sums: dict[str, list[int]] = {}
    for line, amount in bill.traffic.items():
        own = sums.setdefault(_name(bill, line), [0] * len(COLUMNS))
        for at, fits in enumerate(COLUMNS.values()):
            own[at] += amount * fits(line)
    for name in sorted(sums, key=lambda each: (-sum(sums[each]), each)):
        yield name, tuple(f"{amount / GB:,.3f}" if amount else "" for amount in sums[name])


def _name(bill: Bill, line: TrafficLine) -> str:
    if not line.namespace:
        return UNKNOWN
    return line.namespace if bill.team else line.team or NOBODY
