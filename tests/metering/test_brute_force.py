"""Random lives of hosts, pods and namespaces: the ledger equals one that looks at every second alone, and always closes."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.metering.facts import Entry, HostFact, PodFact, Room, SpaceFact, Subject, Use
from controllers.metering.ledger import CLOSING, FIELDS, MICRO, Ledger, count
from tests.metering.lives import HOUR, START, history, second_by_second

SPAN = (START - START % HOUR + HOUR - 40, START - START % HOUR + HOUR + 40)
"""80 seconds around a full hour."""
EXAMPLES = 60
HOSTS, SPACES, TEAMS = ("h1", "h2"), ("team-a", "user-b", "kube-system"), ("a", "b")
moments = st.integers(SPAN[0] - 10, SPAN[1] + 10)
rooms = st.builds(Room, st.integers(0, 8), st.integers(0, 9), st.integers(0, 9))


@st.composite
def host_facts(draw: st.DrawFn) -> HostFact:
    team = draw(st.sampled_from(("", *TEAMS)))
    serving = Use.HELD if team else Use.FREE
    idle = draw(st.sampled_from((serving, Use.DRAINED, Use.BROKEN, Use.BOOTING)))
    return HostFact(
        draw(st.sampled_from(("p", "q"))), idle, draw(st.booleans()), team, draw(rooms), draw(st.integers(0, 9))
    )


space_facts = st.one_of(
    st.builds(SpaceFact, st.sampled_from(("", *TEAMS))),
    st.builds(SpaceFact, st.just(""), st.just("ana"), st.sampled_from(((), ("a",), ("b",), ("a", "b")))),
)
pod_facts = st.builds(PodFact, st.sampled_from((*SPACES, "unlabelled")), st.sampled_from((*HOSTS, "gone")), rooms)
host_steps = st.dictionaries(
    st.sampled_from(HOSTS), st.dictionaries(moments, st.none() | host_facts(), min_size=1, max_size=5)
)
space_steps = st.dictionaries(st.sampled_from(SPACES), st.dictionaries(moments, space_facts, min_size=1, max_size=3))
pod_lives = st.dictionaries(
    st.sampled_from([f"u{n}" for n in range(7)]), st.tuples(moments, st.integers(1, 60), pod_facts)
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(host_steps, space_steps, pod_lives)
def test_the_ledger_equals_one_that_looks_at_every_second(
    hosts: dict[str, dict[int, HostFact | None]],
    spaces: dict[str, dict[int, SpaceFact]],
    pods: dict[str, tuple[int, int, PodFact]],
) -> None:
    lived = {uid: (start, start + length, fact) for uid, (start, length, fact) in pods.items()}
    entries = [
        *(Entry(since, Subject.HOST, name, fact) for name, own in hosts.items() for since, fact in sorted(own.items())),
        *(
            Entry(since, Subject.SPACE, name, fact)
            for name, own in spaces.items()
            for since, fact in sorted(own.items())
        ),
        *(Entry(start, Subject.POD, uid, fact) for uid, (start, _, fact) in lived.items()),
        *(Entry(end, Subject.POD, uid, None) for uid, (_, end, _) in lived.items()),
    ]
    ledger = count(history(*entries, start=SPAN[0] - 100, end=SPAN[1] + 100), *SPAN)
    steps = {name: sorted(own.items(), key=lambda item: item[0]) for name, own in hosts.items()}
    ordered = {name: sorted(own.items(), key=lambda item: item[0]) for name, own in spaces.items()}
    expected, capacity = second_by_second(steps, lived, ordered, SPAN)
    assert _parts(ledger) == expected
    assert dict(zip(FIELDS, ledger.capacity, strict=True)) == {
        **dict.fromkeys(FIELDS, 0),
        **{name: capacity[name] for name in ("gpus", "cpu", "memory")},
        "host_us": capacity["seconds"] * MICRO,
    }
    sums = dict(zip(FIELDS, ledger.sums(), strict=True))
    assert [sums[name] for name in CLOSING] == [
        dict(zip(FIELDS, ledger.capacity, strict=True))[name] for name in CLOSING
    ]
    assert all(amount >= 0 for amounts in ledger.parts.values() for amount in amounts)
    assert not any(ledger.missing)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(host_steps, pod_lives, moments, st.integers(1, 40))
def test_with_a_gap_anywhere_parts_and_what_is_missing_still_add_up(
    hosts: dict[str, dict[int, HostFact | None]], pods: dict[str, tuple[int, int, PodFact]], gap: int, length: int
) -> None:
    entries = [
        *(Entry(since, Subject.HOST, name, fact) for name, own in hosts.items() for since, fact in sorted(own.items())),
        *(Entry(start, Subject.POD, uid, fact) for uid, (start, _, fact) in pods.items()),
        *(Entry(start + more, Subject.POD, uid, None) for uid, (start, more, _) in pods.items()),
    ]
    known = history(*entries, start=SPAN[0] - 100, end=SPAN[1] + 100)
    known.gaps.append(type(known.gaps_in(0, 1)[0])(gap, gap + length, "nobody watched"))
    ledger = count(known, *SPAN)
    for name, whole, part, gone in zip(FIELDS, ledger.capacity, ledger.sums(), ledger.missing, strict=True):
        assert name not in CLOSING or part + gone == whole, name


def _parts(ledger: Ledger) -> Counter[tuple[str, ...]]:
    counted: Counter[tuple[str, ...]] = Counter()
    for key, amounts in ledger.parts.items():
        words = (str(key.hour), key.team, key.namespace, key.user, key.pool, key.use.value)
        for name in ("gpus", "cpu", "memory"):
            counted[*words, name] += amounts[FIELDS.index(name)]
    return Counter({key: amount for key, amount in counted.items() if amount})
