"""Random lives and readings: the ledger's energy equals one that looks at every second alone, and always closes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.metering import energy
from controllers.metering.facts import (
    EnergyFact,
    EnergySource,
    Entry,
    Fact,
    HostFact,
    PodFact,
    PowerFact,
    SpaceFact,
    Subject,
    Use,
)
from controllers.metering.ledger import FIELDS, MICRO, Ledger, count
from tests.metering.lives import HOUR, _at, history
from tests.metering.test_brute_force import HOSTS, SPAN, host_steps, moments, pod_lives, space_steps

HOLD_S, EXAMPLES = 20, 40
Key = tuple[int, str, str, str, str, str]
watts = st.integers(0, 9000)
powers = st.dictionaries(st.sampled_from(HOSTS), st.dictionaries(moments, watts, max_size=6))
energy_facts = st.one_of(
    st.builds(EnergyFact, st.sampled_from(list(EnergySource))),
    st.builds(EnergyFact, st.just(EnergySource.BMC), st.integers(1, 500), st.integers(500, 9000), st.none()),
)
declared = st.dictionaries(st.sampled_from(("p", "q")), st.dictionaries(moments, energy_facts, min_size=1, max_size=3))
Steps = Mapping[str, Mapping[int, Fact | None]]


def parts(
    now: HostFact, present: Iterable[PodFact], spaces: Steps, second: int
) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    """Yield (team, namespace, user, use) and the share of a host, of each part in a second."""
    weight, whole = (0, now.room.gpus) if now.room.gpus else (1, now.room.cpu)
    left = whole
    for one in present if not now.down else ():
        space = _at(sorted(spaces.get(one.namespace, {}).items()), second) or SpaceFact()
        assert isinstance(space, SpaceFact)
        team = space.team or (space.teams[0] if len(space.teams) == 1 else "")
        team = team or (now.team if now.team in space.teams else "")
        has = min(one.need[weight], left)
        left -= has
        if has:
            yield (team, one.namespace, space.user, "used"), Fraction(has, whole)
    bad = min(now.bad_gpus, left) if now.idle in (Use.FREE, Use.HELD) and weight == 0 and whole else 0
    if bad:
        yield ("", "", "", "broken"), Fraction(bad, whole)
    rest = Fraction(left - bad, whole) if whole else Fraction(1)
    yield (now.team if now.idle is Use.HELD else "", "", "", now.idle.value), rest


def reading(steps: Mapping[int, int], second: int) -> int | None:
    """Return the watts of the last reading that still holds."""
    last = max((moment for moment in steps if moment <= second), default=None)
    return None if last is None or second >= last + HOLD_S else steps[last]


def second_by_second(
    hosts: Steps,
    pods: Mapping[str, tuple[int, int, PodFact]],
    spaces: Steps,
    read: Mapping[str, Mapping[int, int]],
    of_pools: Steps,
) -> tuple[dict[Key, Fraction], dict[Key, Fraction], dict[Key, Fraction]]:
    """Return joules, those of them that are an estimate, and host seconds without any, by part."""
    sums: list[dict[Key, Fraction]] = [{}, {}, {}]
    for second in range(*SPAN):
        for name, steps in hosts.items():
            now = _at(sorted(steps.items()), second)
            if not isinstance(now, HostFact):
                continue
            lived = sorted((uid, one) for uid, (start, more, one) in pods.items() if start <= second < start + more)
            own = [one for _, one in lived if one.node == name]
            known = _at(sorted(of_pools.get(now.pool, {}).items()), second)
            drawn = reading(read.get(name, {}), second)
            for words, share in parts(now, own, spaces, second):
                key: Key = (second // HOUR * HOUR, *words[:3], now.pool, words[3])  # type: ignore[assignment]
                amounts = [Fraction(0)] * 3
                if drawn is not None:
                    amounts[0] = share * drawn
                elif isinstance(known, EnergyFact) and known.busy:
                    amounts[0] = amounts[1] = share * (known.busy if words[3] == "used" else known.idle)
                else:
                    amounts[2] = share
                for each, amount in zip(sums, amounts, strict=True):
                    each[key] = each.get(key, Fraction(0)) + amount
    return sums[0], sums[1], sums[2]


def counted(ledger: Ledger, field: str) -> dict[Key, int]:
    sums: Counter[Key] = Counter()
    for key, amounts in ledger.parts.items():
        sums[key.hour, key.team, key.namespace, key.user, key.pool, key.use.value] += amounts[FIELDS.index(field)]
    return dict(sums)


def entries_of(subject: Subject, steps: Steps) -> list[Entry]:
    return [Entry(since, subject, name, fact) for name, own in steps.items() for since, fact in sorted(own.items())]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(host_steps, space_steps, pod_lives, powers, declared)
def test_its_energy_equals_one_that_looks_at_every_second(
    hosts: Steps,
    spaces: Steps,
    pods: dict[str, tuple[int, int, PodFact]],
    read: dict[str, dict[int, int]],
    of_pools: Steps,
) -> None:
    entries = [
        *entries_of(Subject.HOST, hosts),
        *entries_of(Subject.SPACE, spaces),
        *entries_of(Subject.ENERGY, of_pools),
        *entries_of(
            Subject.POWER, {name: {at: PowerFact(drawn) for at, drawn in own.items()} for name, own in read.items()}
        ),
        *(Entry(start, Subject.POD, uid, fact) for uid, (start, _, fact) in pods.items()),
        *(Entry(start + more, Subject.POD, uid, None) for uid, (start, more, _) in pods.items()),
    ]
    with patch.object(energy, "HOLD_S", HOLD_S):
        ledger = count(history(*entries, start=SPAN[0] - 100, end=SPAN[1] + 100), *SPAN)
    expected = second_by_second(hosts, pods, spaces, read, of_pools)
    for field, unit, sums in zip(("energy", "estimated", "unmetered_us"), (MICRO, MICRO, MICRO), expected, strict=True):
        own = counted(ledger, field)
        for key in {*own, *sums}:
            # A share of a host is rounded to a microsecond: at most 9,000 W of it, for each of at most some hundred pieces.
            assert abs(own.get(key, 0) - sums.get(key, Fraction(0)) * unit) < MICRO, (field, key)
    at = FIELDS.index("energy")
    assert ledger.sums().energy + ledger.missing[at] == ledger.capacity[at]
    total = sum(expected[0].values(), Fraction(0)) * MICRO
    # What is measured is exact; an estimate is rounded once a part.
    measured = ledger.sums().energy - ledger.sums().estimated
    assert measured == (sum(expected[0].values(), Fraction(0)) - sum(expected[1].values(), Fraction(0))) * MICRO
    assert abs(ledger.capacity[at] - total) < MICRO
