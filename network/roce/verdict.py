"""Finds the host, port, rail or pair that makes a fabric slow, from the results of its rounds. Pure.

A single slow pair implicates two hosts and everything between them. The other rounds exonerate: a host that is fast with others
is not the cause.

- Nearly all pairs of a rail are slow: the rail (a switch, its settings, everybody's MTU).
- A host is slow with most others on a rail: its port there, in both directions or only when it sends or receives.
- A host is slow on all of its several rails: the host itself (PCIe, BIOS, the memory that is read).
- Anything else: the pair (the path between their two switches).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

RAIL_IS_SLOW = 0.9
"""Share of a rail's pairs that must be slow for the rail itself to be the cause."""
HOST_IS_SLOW = 0.5
"""Share of a host's pairs on a rail that must be slow, or have failed, for its port to be the cause."""
FEWEST = 2
"""The fewest slow pairs to blame a host for: a single one could just as well be the other host's fault."""


class Cause(StrEnum):
    RAIL = "rail"
    HOST = "host"
    PORT = "port"
    PAIR = "pair"


class Direction(StrEnum):
    BOTH = "both ways"
    SENDING = "when it sends"
    RECEIVING = "when it receives"


@dataclass(frozen=True)
class PairOutcome:
    """The result of a pair on a rail.

    share: of the line's speed, None if the pair failed; `error` then says why. mtu: the RoCE MTU that both used, if known.
    """

    rail: str
    sender: str
    receiver: str
    share: float | None
    error: str = ""
    mtu: int | None = None

    def is_slow(self, mark: float) -> bool:
        return self.share is None or self.share < mark


@dataclass(frozen=True)
class Blame:
    """A cause of slowness.

    rail: "" for all rails of a host. who: the hosts concerned. share: the median of its pairs' shares, None if all failed.
    pairs, of: the slow pairs that it explains, out of those measured.
    """

    cause: Cause
    rail: str
    who: tuple[str, ...]
    direction: Direction
    share: float | None
    pairs: int
    of: int
    detail: str = ""

    def __str__(self) -> str:
        share = "no result" if self.share is None else f"{self.share:.1%} of the line"
        where = f" on rail {self.rail}" if self.rail and self.cause is not Cause.RAIL else ""
        what = {
            Cause.RAIL: f"rail {self.rail}",
            Cause.HOST: f"host {self.who[0]}, on all its rails" if self.who else "",
            Cause.PORT: f"port or cable of {self.who[0]}{where}" if self.who else "",
            Cause.PAIR: f"path between {' and '.join(self.who)}{where}",
        }[self.cause]
        direction = "" if self.direction is Direction.BOTH else f", {self.direction}"
        detail = f"; {self.detail}" if self.detail else ""
        return f"{what}{direction}: {share} ({self.pairs} of {self.of} pairs){detail}"


def judge(outcomes: Sequence[PairOutcome], mark: float, mtu: int) -> tuple[Blame, ...]:
    """Return the causes of pairs slower than `mark`, worst first on each rail. mtu: the fabric's RoCE MTU."""
    rails = list(dict.fromkeys(outcome.rail for outcome in outcomes))
    blames: list[Blame] = []
    for rail in rails:
        blames += _on_rail(rail, [outcome for outcome in outcomes if outcome.rail == rail], mark, mtu)
    return tuple(_hosts_on_all_rails(blames, outcomes))


def _on_rail(rail: str, measured: list[PairOutcome], mark: float, mtu: int) -> Iterable[Blame]:
    slow = [outcome for outcome in measured if outcome.is_slow(mark)]
    hosts = {host for outcome in measured for host in (outcome.sender, outcome.receiver)}
    if len(hosts) > 2 and len(measured) > FEWEST and len(slow) >= RAIL_IS_SLOW * len(measured):
        yield _blame(Cause.RAIL, rail, (), Direction.BOTH, slow, len(measured), mtu)
        return
    total = _counted(measured)
    while worst := _worst(slow, total):
        own = [outcome for outcome in slow if worst in _keys(outcome)]
        yield _blame(Cause.PORT, rail, worst[:1], worst[1], own, total[worst], mtu)
        # Pairs that a host's port explains do not count against other hosts.
        slow = [outcome for outcome in slow if worst not in _keys(outcome)]
        total -= _counted(own)
    for outcome in slow:
        who = (outcome.sender, outcome.receiver)
        yield _blame(Cause.PAIR, rail, who, Direction.BOTH, [outcome], 1, mtu)


def _keys(outcome: PairOutcome) -> tuple[tuple[str, Direction], ...]:
    """Return the hosts of a pair, each with the directions for which the pair is evidence."""
    return (
        (outcome.sender, Direction.BOTH),
        (outcome.receiver, Direction.BOTH),
        (outcome.sender, Direction.SENDING),
        (outcome.receiver, Direction.RECEIVING),
    )


def _counted(outcomes: Iterable[PairOutcome]) -> Counter[tuple[str, Direction]]:
    return Counter(key for outcome in outcomes for key in _keys(outcome))


def _worst(slow: list[PairOutcome], total: Counter[tuple[str, Direction]]) -> tuple[str, Direction] | None:
    """Return the host and direction that explain most slow pairs, among those for which most pairs are slow."""
    suspects = [
        (count, count / total[key], key)
        for key, count in _counted(slow).items()
        if count >= FEWEST and count > HOST_IS_SLOW * total[key]
    ]
    # With equal counts, prefer the direction that was always slow, then sort by name: equal results give equal verdicts.
    return min(suspects, key=lambda suspect: (-suspect[0], -suspect[1], suspect[2]))[2] if suspects else None


def _blame(
    cause: Cause, rail: str, who: tuple[str, ...], direction: Direction, slow: list[PairOutcome], of: int, mtu: int
) -> Blame:
    shares = [outcome.share for outcome in slow if outcome.share is not None]
    smaller = sorted({outcome.mtu for outcome in slow if outcome.mtu and outcome.mtu < mtu})
    errors = sorted({outcome.error for outcome in slow if outcome.error})
    details = [f"RoCE MTU {', '.join(map(str, smaller))} instead of {mtu}"] if smaller else []
    details += errors[:2]
    share = median(shares) if shares else None
    return Blame(cause, rail, who, direction, share, len(slow), of, "; ".join(details))


def _hosts_on_all_rails(blames: list[Blame], outcomes: Sequence[PairOutcome]) -> Iterable[Blame]:
    """Merge the ports of a host into the host itself if they are slow on all of its rails."""
    rails: dict[str, set[str]] = {}
    for outcome in outcomes:
        for host in (outcome.sender, outcome.receiver):
            rails.setdefault(host, set()).add(outcome.rail)
    ports: dict[str, list[Blame]] = {}
    for blame in blames:
        if blame.cause is Cause.PORT:
            ports.setdefault(blame.who[0], []).append(blame)
    whole = {host: own for host, own in ports.items() if len(own) > 1 and {b.rail for b in own} == rails[host]}
    for host, own in whole.items():
        shares = [blame.share for blame in own if blame.share is not None]
        directions = {blame.direction for blame in own}
        direction = directions.pop() if len(directions) == 1 else Direction.BOTH
        details = "; ".join(dict.fromkeys(blame.detail for blame in own if blame.detail))
        share = median(shares) if shares else None
        pairs, of = sum(blame.pairs for blame in own), sum(blame.of for blame in own)
        yield Blame(Cause.HOST, "", (host,), direction, share, pairs, of, details)
    yield from (blame for blame in blames if not (blame.cause is Cause.PORT and blame.who[0] in whole))
