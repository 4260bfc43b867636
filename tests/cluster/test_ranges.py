"""Ranges compared with a brute-force comparison of their addresses."""

from ipaddress import IPv4Network
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cluster.check.ranges import DOCKER, free, overlapping

PRIVATE = [IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]


@st.composite
def networks(draw: st.DrawFn) -> IPv4Network:
    """Small enough to list every address, close enough together to overlap often."""
    prefix = draw(st.integers(24, 32))
    return IPv4Network((int(IPv4Network("10.0.0.0/23")[draw(st.integers(0, 511))]), prefix), strict=False)


@given(st.lists(networks(), max_size=6))
def test_overlaps_match_a_comparison_of_all_addresses(listed: list[IPv4Network]) -> None:
    addresses = [set(map(int, network)) for network in listed]
    brute = {(i, j) for i, j in combinations(range(len(listed)), 2) if addresses[i] & addresses[j]}
    pairs = list(overlapping(listed))
    assert set(pairs) == brute
    assert len(pairs) == len(brute)


@st.composite
def wide(draw: st.DrawFn) -> IPv4Network:
    block = draw(st.sampled_from(PRIVATE))
    offset = draw(st.integers(0, block.num_addresses - 1))
    return IPv4Network((int(block.network_address) + offset, draw(st.integers(8, 28))), strict=False)


@given(st.integers(8, 28), st.lists(wide(), max_size=20))
def test_a_suggested_range_is_free_and_private(prefix: int, taken: list[IPv4Network]) -> None:
    room = free(prefix, taken)
    if room is not None:
        assert room.prefixlen == prefix
        assert not any(room.overlaps(network) for network in [*taken, DOCKER])
        assert any(room.subnet_of(block) for block in PRIVATE)


@given(st.integers(14, 17), st.lists(wide(), max_size=8))
def test_no_range_is_suggested_only_when_none_is_free(prefix: int, taken: list[IPv4Network]) -> None:
    every = [
        candidate for block in PRIVATE if block.prefixlen <= prefix for candidate in block.subnets(new_prefix=prefix)
    ]
    left = [candidate for candidate in every if not any(candidate.overlaps(network) for network in [*taken, DOCKER])]
    assert free(prefix, taken) == (left[0] if left else None)


def test_many_equal_ranges_are_each_reported_with_only_a_few_others() -> None:
    pairs = list(overlapping([IPv4Network("10.0.0.0/24")] * 2000))
    assert {index for pair in pairs for index in pair} == set(range(2000))
    assert len(pairs) < 2000 * 6
