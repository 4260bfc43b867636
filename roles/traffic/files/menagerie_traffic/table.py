"""The table in the kernel: whether it is as we made it, its counters, and changes of it. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import layout
from .netlink import Netlink, attribute, attributes, number, pairs, text
from .plan import Plan

_OWN = attribute(1, layout.TABLE)


class Count(NamedTuple):
    """bytes: of IP packets, with their headers. Segments that the kernel handles as one packet have one header."""

    bytes: int
    packets: int


class Live(NamedTuple):
    """What the kernel has. handle: another one is another table; 0 without one.

    rules: chain -> number of its rules. addresses: map -> address -> name of its counter.
    """

    handle: int
    rules: dict[str, int]
    addresses: dict[str, dict[str, str]]


class Table:
    """The table of this network namespace, whether it exists or not."""

    def __init__(self, plan: Plan) -> None:
        self._netlink, self._plan = Netlink(), plan
        self.layout = plan.digest()
        self._rules = {name: len(rules) for name, rules in layout.rules_of(plan).items() if rules}

    def generation(self) -> int:
        """Return the number of the last transaction of anybody. The kernel counts from a random one."""
        answer = self._netlink.one(layout.GET_GENERATION, about="the generation")
        return number(answer.attributes[1]) if answer else 0

    def handle(self) -> int:
        answer = self._netlink.one(layout.GET_TABLE, _OWN, layout.TABLE)
        return number(answer.attributes[4]) if answer else 0

    def live(self, full: bool = True) -> Live:
        """Return what is there; without `full` only one of the maps, which all have the same addresses."""
        handle = self.handle()
        if not handle:
            return Live(0, {}, {})
        rules: dict[str, int] = {}
        for answer in self._netlink.listed(layout.GET_RULE, _OWN, "rules"):
            if text(answer.attributes[1]) == layout.TABLE:
                name = text(answer.attributes[2])
                rules[name] = rules.get(name, 0) + 1
        names = layout.maps() if full else layout.maps()[:1]
        there = self._sets()
        return Live(handle, rules, {name: self._elements(name) for name in names if name in there})

    def is_whole(self, live: Live) -> bool:
        """Return whether all rules and maps are there. Addresses may differ."""
        return bool(live.handle and live.addresses) and live.rules == self._rules

    def counters(self) -> dict[str, Count]:
        """Return the counters by name; empty without a table."""
        answers = self._netlink.listed(layout.GET_OBJECTS, _OWN, "counters") if self.handle() else []
        counts = {}
        for answer in answers:
            if text(answer.attributes[1]) == layout.TABLE and number(answer.attributes[3]) == 1:
                data = attributes(answer.attributes[4])
                counts[text(answer.attributes[2])] = Count(number(data[1]), number(data[2]))
        return counts

    def rebuild(self, pods: Mapping[str, str]) -> None:
        """Replace all rules and maps, with these addresses. Counters that exist go on."""
        messages = []
        if self.handle():
            messages = layout.emptied(self._chains(), self._sets())
        messages += [*layout.built(self._plan), *self._counters_of(pods), *layout.attributed(pods)]
        self._netlink.commit(messages)

    def change(self, removed: Sequence[str], added: Mapping[str, str]) -> None:
        """Remove addresses, which must be there, then add others, in one transaction."""
        self._netlink.commit([*layout.detached(removed), *self._counters_of(added), *layout.attributed(added)])

    def forget(self, counters: Sequence[str]) -> None:
        """Remove counters that no address has."""
        self._netlink.commit([layout.old_counter(name) for name in counters])

    def remove(self) -> None:
        """Remove the table, if it is there."""
        if self.handle():
            self._netlink.commit([layout.removed()])

    def close(self) -> None:
        self._netlink.close()

    def _counters_of(self, pods: Mapping[str, str]) -> list[layout.Message]:
        return [
            layout.new_counter(layout.counter(direction, kind, namespace))
            for namespace in sorted(set(pods.values()))
            for direction in layout.DIRECTIONS
            for kind in layout.CLASSES
        ]

    def _chains(self) -> list[str]:
        answers = self._netlink.listed(layout.GET_CHAIN, about="chains")
        return [text(each.attributes[3]) for each in answers if text(each.attributes[1]) == layout.TABLE]

    def _sets(self) -> list[str]:
        return [text(answer.attributes[2]) for answer in self._netlink.listed(layout.GET_SET, _OWN, "maps")]

    def _elements(self, name: str) -> dict[str, str]:
        body = attribute(1, layout.TABLE) + attribute(2, name)
        held: dict[str, str] = {}
        for answer in self._netlink.listed(layout.GET_ELEMENTS, body, f"addresses of {name}"):
            for _, element in pairs(answer.attributes.get(3, b"")):
                fields = attributes(element)
                key = attributes(fields[1])[1]
                held[".".join(map(str, key))] = text(fields.get(9, b""))
        return held
