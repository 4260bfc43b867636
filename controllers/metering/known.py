"""What is known of a cluster now, and the entries that a look adds to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from controllers.metering.facts import EnergyFact, Entry, Fact, HostFact, PriceFact, Subject

Known = dict[tuple[Subject, str], tuple[int, Fact]]
"""(subject, id) -> (since, fact)."""
_REPORTED = (Subject.POWER, Subject.COUNTERS)
"""What a host reports of itself, under its name."""


class Book:
    """Facts that hold now. entries: those that were added since the last `taken`."""

    def __init__(self, known: Mapping[tuple[Subject, str], tuple[int, Fact]]) -> None:
        self.known: Known = dict(known)
        self.entries: list[Entry] = []

    def before(self, subject: Subject, id: str) -> tuple[int, Fact] | None:
        """Return what is known of a thing: (since, fact)."""
        return self.known.get((subject, id))

    def add(self, entries: Iterable[Entry]) -> None:
        """Take entries over, in their order."""
        for entry in entries:
            self.entries.append(entry)
            if entry.fact is None:
                self.known.pop((entry.subject, entry.id), None)
            else:
                self.known[entry.subject, entry.id] = (entry.since, entry.fact)

    def gone(self, subject: Subject, id: str, since: int) -> None:
        """Note that a thing is gone, if it was known, and with a host what it reported."""
        for each in (subject, *(_REPORTED if subject is Subject.HOST else ())):
            if (each, id) in self.known:
                self.add([Entry(max(since, self.known[each, id][0]), each, id, None)])

    def hosts(self) -> dict[str, Fact]:
        """Return the hosts that are known, by name."""
        return {id: fact for (subject, id), (_, fact) in self.known.items() if subject is Subject.HOST}

    def declared(self, subject: Subject, now: Mapping[str, PriceFact | EnergyFact], at: int) -> None:
        """Take over what the spec declares of all pools. Of a pool that it no longer has, nothing holds."""
        for pool, fact in sorted(now.items()):
            before = self.before(subject, pool)
            if before is None or before[1] != fact:
                self.add([Entry(at, subject, pool, fact)])
        for _, pool in [key for key in self.known if key[0] is subject and key[1] not in now]:
            self.gone(subject, pool, at)

    def taken(self, *, whole: bool) -> tuple[Entry, ...]:
        """Return the entries since the last call, and forget them. whole: with everything else that holds."""
        new, self.entries = self.entries, []
        return tuple([*self._rest({(entry.subject, entry.id) for entry in new}), *new] if whole else new)

    def _rest(self, without: set[tuple[Subject, str]]) -> Iterator[Entry]:
        for (subject, id), (since, fact) in sorted(self.known.items(), key=lambda item: item[0]):
            if (subject, id) not in without:
                yield Entry(since, subject, id, fact)


def down(facts: Iterable[Fact]) -> int:
    """Return how many hosts are down."""
    return sum(isinstance(fact, HostFact) and fact.down for fact in facts)
