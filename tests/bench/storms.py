"""Storms of Events: the compared control planes, the results, and the figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.spec import RoleName
from tests.bench.figures import Figure, ratios
from tests.bench.load import Timed
from tests.bench.loopback import Shape

NODES_MEANT = 2500
RATE = 20.0
"""Ordinary writes per second."""
QUOTA, AFTER = 24 * 2**20, 100
"""Quota in bytes of an etcd that is filled, and number of ordinary writes that are tried then."""
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
    """delay_ms: extra milliseconds per fsync on the slow disk. events_s: Events per second; None: as many as are answered."""

    delay_ms: float
    events_s: float | None = None

    def __str__(self) -> str:
        return f"fsync of {self.delay_ms:g} ms, {f'{self.events_s:g}' if self.events_s else 'all'} Events/s"

    @classmethod
    def parsed(cls, text: str) -> Storm:
        """Parse DELAY or DELAY:EVENTS. ValueError for anything else."""
        delay, _, events = text.partition(":")
        return cls(float(delay), float(events) if events else None)


STORMS = (Storm(2.0), Storm(20.0, 150.0))
"""The fsync times of OpenAI's network disks, whose local disks took 0.2 ms (Scaling Kubernetes to 2,500 nodes), and of a disk
with a low limit of operations. Unlimited Events keep both cores busy, and every write waits for a core; the other storm
leaves some CPU time idle."""


@dataclass(frozen=True)
class Round:
    """Results of one arm in one turn, without the storm and in it.

    quiet, stormy: ordinary writes. main_quiet, main_stormy: writes that main counted meanwhile. events_s: Events written per
    second.
    """

    quiet: Timed
    stormy: Timed
    main_quiet: float
    main_stormy: float
    events_s: float


@dataclass
class Turns:
    """Rounds of each arm. put_ms: arm -> milliseconds of a single write to the slow etcd, under strace."""

    rounds: dict[str, list[Round]] = field(default_factory=dict)
    put_ms: dict[str, float] = field(default_factory=dict)


def describe(done: Round) -> str:
    """Return one line for people."""
    quiet, stormy = (f"{each.percentile(0.99) * 1000:.0f} ms" for each in (done.quiet, done.stormy))
    return f"p99 {quiet} quiet, {stormy} in a storm of {done.events_s:.0f} Events/s; {done.stormy.refused} failed"


def summary(storm: Storm, turns: Turns) -> list[Figure]:
    """Return the figures of one kind of storm. Ratios compare the storms of one round."""
    what = f"ordinary writes in a storm of Events, {storm}"
    figures = []
    for name, rounds in turns.rounds.items():
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
            Figure(f"a single Event, {storm}, {name}", "ms", (turns.put_ms[name],), None, alone),
        ]
    split, both, one = (turns.rounds[arm.name] for arm in ARMS)
    figures += [
        Figure(f"{what}: p50, split ÷ one etcd", "", ratios(_stormy(split, 0.5), _stormy(one, 0.5))),
        Figure(f"{what}: p99, split ÷ one etcd", "", ratios(_stormy(split), _stormy(one)), RATIO_AIM),
        Figure(f"{what}: p99, split with both slow ÷ one etcd", "", ratios(_stormy(both), _stormy(one))),
    ]
    for arm in (SPLIT, ONE):
        writes = tuple(each.main_stormy / each.main_quiet for each in turns.rounds[arm.name])
        aim = WRITES_AIM if arm is SPLIT else None
        counted = "etcd_mvcc_put_total; as many ordinary writes in both"
        figures.append(
            Figure(f"writes that main counted, storm ÷ quiet, {storm}, {arm.name}", "", writes, aim, counted)
        )
    return figures


def when_full(failed: Mapping[str, int]) -> list[Figure]:
    """Return the figures of writes that failed with the quota full."""
    full = f"of {AFTER}, with an etcd of {QUOTA >> 20} MiB full of Events"
    what = "other writes failed with Events' quota full"
    return [
        Figure(f"{what}, {name}", "", (float(count),), 0.0 if name == SPLIT.name else None, full)
        for name, count in failed.items()
    ]


def _least(timed: Sequence[Timed]) -> int:
    """Return the number of calls behind a percentile, in the round with the fewest."""
    return min(len(each.seconds) for each in timed)


def _stormy(rounds: Sequence[Round], share: float = 0.99) -> tuple[float, ...]:
    return tuple(each.stormy.percentile(share) * 1000 for each in rounds)
