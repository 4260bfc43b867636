"""Storms of Events and what they showed: which control planes are compared, and the figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.spec import RoleName
from tests.bench.figures import Figure, ratios
from tests.bench.load import Timed
from tests.bench.loopback import Shape

NODES_MEANT = 2500
RATE = 20.0
"""Ordinary writes a second."""
QUOTA, AFTER = 24 * 2**20, 100
"""Bytes of an etcd that is to be filled, and ordinary writes that are tried then."""
RATIO_AIM, WRITES_AIM = 0.1, 1.01


@dataclass(frozen=True)
class Arm:
    """One of the compared control planes."""

    name: str
    split: bool
    slow: tuple[RoleName, ...]

    def shape(self, number: int, delay_us: int, quota: int | None = None) -> Shape:
        delays: Mapping[RoleName, int] = dict.fromkeys(self.slow, delay_us) if delay_us else {}
        return Shape(NODES_MEANT, number, self.split, fsync_delays=delays, quota=quota)


SPLIT = Arm("split", True, ("events",))
BOTH_SLOW = Arm("split, both slow", True, ("main", "events"))
ONE = Arm("one etcd", False, ("main",))
ARMS = (SPLIT, BOTH_SLOW, ONE)


@dataclass(frozen=True)
class Storm:
    """delay_ms: that each fsync of the slow disk takes longer. events_s: Events a second, None for all that are answered."""

    delay_ms: float
    events_s: float | None = None

    def __str__(self) -> str:
        return f"fsync of {self.delay_ms:g} ms, {f'{self.events_s:g}' if self.events_s else 'all'} Events/s"

    @classmethod
    def parsed(cls, text: str) -> Storm:
        """Of DELAY or DELAY:EVENTS. ValueError for anything else."""
        delay, _, events = text.partition(":")
        return cls(float(delay), float(events) if events else None)


STORMS = (Storm(2.0), Storm(20.0, 150.0))
"""What fsync took on OpenAI's network disks, where their local ones took 0.2 ms (Scaling Kubernetes to 2,500 nodes), and what it
takes on one that is held to few operations. As many Events as are answered keep both cores busy, and then every write waits
for those; so the other storm leaves some of them idle."""


@dataclass(frozen=True)
class Round:
    """What one arm showed in one turn, without the storm and in it.

    quiet, stormy: ordinary writes. main_quiet, main_stormy: writes that main counted meanwhile. events_s: Events a second
    that were written.
    """

    quiet: Timed
    stormy: Timed
    main_quiet: float
    main_stormy: float
    events_s: float


@dataclass
class Turns:
    """Rounds of each arm, and what was seen besides. put_ms: of a single write to the slow etcd, with strace on it."""

    rounds: dict[str, list[Round]] = field(default_factory=dict)
    put_ms: dict[str, float] = field(default_factory=dict)


def describe(done: Round) -> str:
    """One line for people."""
    quiet, stormy = (f"{each.percentile(0.99) * 1000:.0f} ms" for each in (done.quiet, done.stormy))
    return f"p99 {quiet} quiet, {stormy} in a storm of {done.events_s:.0f} Events/s; {done.stormy.refused} failed"


def summary(storm: Storm, seen: Turns) -> list[Figure]:
    """The figures of one kind of storm. Ratios are of the storms of one round."""
    what = f"ordinary writes in a storm of Events, {storm}"
    figures = []
    for name, rounds in seen.rounds.items():
        quiet = tuple(each.quiet.percentile(0.99) * 1000 for each in rounds)
        of_quiet, of_stormy = (_least(each) for each in zip(*((one.quiet, one.stormy) for one in rounds), strict=True))
        alone = "an Event with nothing else going on, to an etcd with that disk"
        figures += [
            Figure(f"{what}, {name}: p50", "ms", _stormy(rounds, 0.5)),
            Figure(
                f"{what}, {name}: p99 of {of_stormy}",
                "ms",
                _stormy(rounds),
                None,
                f"{RATE:g} Lease renewals and ConfigMaps a second",
            ),
            Figure(f"the same without the storm, {storm}, {name}: p99 of {of_quiet}", "ms", quiet),
            Figure(f"{what}, {name}: failed", "", tuple(float(each.stormy.refused) for each in rounds), 0.0),
            Figure(f"Events a second, {storm}, {name}", "", tuple(each.events_s for each in rounds)),
            Figure(f"a single Event, {storm}, {name}", "ms", (seen.put_ms[name],), None, alone),
        ]
    split, both, one = (seen.rounds[arm.name] for arm in ARMS)
    figures += [
        Figure(f"{what}: p50, split ÷ one etcd", "", ratios(_stormy(split, 0.5), _stormy(one, 0.5))),
        Figure(f"{what}: p99, split ÷ one etcd", "", ratios(_stormy(split), _stormy(one)), RATIO_AIM),
        Figure(f"{what}: p99, split with both slow ÷ one etcd", "", ratios(_stormy(both), _stormy(one))),
    ]
    for arm in (SPLIT, ONE):
        writes = tuple(each.main_stormy / each.main_quiet for each in seen.rounds[arm.name])
        aim = WRITES_AIM if arm is SPLIT else None
        counted = "etcd_mvcc_put_total; as many ordinary writes in both"
        figures.append(
            Figure(f"writes that main counted, storm ÷ quiet, {storm}, {arm.name}", "", writes, aim, counted)
        )
    return figures


def when_full(failed: Mapping[str, int]) -> list[Figure]:
    """Figures of writes that failed with the quota full."""
    full = f"of {AFTER}, with an etcd of {QUOTA >> 20} MiB full of Events"
    what = "other writes failed with Events' quota full"
    return [
        Figure(f"{what}, {name}", "", (float(count),), 0.0 if name == SPLIT.name else None, full)
        for name, count in failed.items()
    ]


def _least(timed: Sequence[Timed]) -> int:
    """How many calls a percentile is of, in the round that had least."""
    return min(len(each.seconds) for each in timed)


def _stormy(rounds: Sequence[Round], share: float = 0.99) -> tuple[float, ...]:
    return tuple(each.stormy.percentile(share) * 1000 for each in rounds)
