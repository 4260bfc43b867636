"""Every pair is measured once, no host twice at a time."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from network.roce.rounds import count, rounds, seconds

NUMBERS = st.integers(0, 60)


@given(NUMBERS)
def test_every_pair_is_measured_exactly_once(hosts: int) -> None:
    pairs = [frozenset(pair) for in_round in rounds(range(hosts)) for pair in in_round]
    assert Counter(pairs) == Counter(map(frozenset, combinations(range(hosts), 2)))


@given(NUMBERS)
def test_no_host_is_in_two_pairs_of_a_round(hosts: int) -> None:
    for pairs in rounds(range(hosts)):
        busy = [host for pair in pairs for host in pair]
        assert len(busy) == len(set(busy))


@given(NUMBERS)
def test_rounds_are_minimal_and_with_an_odd_number_each_host_has_one_bye(hosts: int) -> None:
    schedule = list(rounds(range(hosts)))
    assert len(schedule) == count(hosts) == (0 if hosts < 2 else hosts - 1 if hosts % 2 == 0 else hosts)
    assert all(len(pairs) == hosts // 2 for pairs in schedule)
    if hosts % 2 and hosts > 1:
        resting = [({*range(hosts)} - {host for pair in pairs for host in pair}).pop() for pairs in schedule]
        assert sorted(resting) == list(range(hosts))


@given(NUMBERS)
def test_each_host_sends_as_often_as_it_receives_except_for_once(hosts: int) -> None:
    sent, received = Counter[int](), Counter[int]()
    for pairs in rounds(range(hosts)):
        sent.update(sender for sender, _ in pairs)
        received.update(receiver for _, receiver in pairs)
    assert all(abs(sent[host] - received[host]) <= 1 for host in range(hosts))


def test_2500_hosts_take_2499_rounds_of_1250_pairs() -> None:
    schedule = list(rounds([f"gpu-{number:04}" for number in range(2500)]))
    assert (len(schedule), {len(pairs) for pairs in schedule}) == (2499, {1250})


def test_fewer_pairs_at_a_time_take_more_time() -> None:
    assert seconds(8, 10, 64) == 7 * 10
    assert seconds(8, 10, 2) == 7 * 2 * 10
    assert seconds(1, 10, 64) == 0
