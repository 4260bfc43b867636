"""Whose use a pod or a volume is: the team, the namespace and the person, at every moment. Pure.

A team's namespace is the team's. A person's is that of the person's only team; of several, the one that the host is
allocated to. Otherwise no team has it: the ledger never guesses one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from controllers.metering.facts import SpaceFact
from controllers.metering.history import Steps, lives


class Payer(NamedTuple):
    """Whose use it is. Each is "" if there is none."""

    team: str = ""
    namespace: str = ""
    user: str = ""


class Payers:
    """The namespaces of an interval."""

    def __init__(self, spaces: Mapping[str, Steps], start: int, end: int) -> None:
        self._lives = {name: list(lives(steps, start, end)) for name, steps in spaces.items()}

    def of(self, namespace: str, host_team: str, start: int, end: int) -> Iterator[tuple[int, int, Payer]]:
        """Yield (start, end, payer), which together are the whole interval. host_team: that the host is allocated to."""
        at = start
        for since, until, fact in self._lives.get(namespace, ()):
            first, last = max(since, at), min(until, end)
            if first >= last:
                continue
            if at < first:
                yield at, first, Payer(namespace=namespace)
            yield (
                first,
                last,
                _payer(namespace, fact, host_team) if isinstance(fact, SpaceFact) else Payer("", namespace),
            )
            at = last
        if at < end:
            yield at, end, Payer(namespace=namespace)


def _payer(namespace: str, space: SpaceFact, host_team: str) -> Payer:
    if space.team:
        return Payer(space.team, namespace, space.user)
    if len(space.teams) == 1:
        return Payer(space.teams[0], namespace, space.user)
    return Payer(host_team if host_team in space.teams else "", namespace, space.user)
