"""Releases of Kubernetes: which versions of its parts may run together, and the steps of an upgrade."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import versions
from cluster.releases import SUPPORTED, Part, is_back, is_version, minor, numbers, wrong_skew, wrong_step

BESIDE_ONE = [
    (Part.API_SERVER, "1.36.4", "1.35.2", "1.37.0"),
    (Part.CONTROLLER_MANAGER, "1.36.4", "1.35.2", "1.36.9"),
    (Part.SCHEDULER, "1.36.4", "1.35.2", "1.36.9"),
    (Part.KUBELET, "1.36.4", "1.33.1", "1.36.9"),
    (Part.KUBE_PROXY, "1.36.4", "1.33.1", "1.36.9"),
]
"""Part, an API server, and the oldest and the newest that the part may be: "Supported versions" of the Version Skew Policy."""
BESIDE_TWO = [
    (Part.CONTROLLER_MANAGER, "1.36.0", "1.36.9"),
    (Part.SCHEDULER, "1.36.0", "1.36.9"),
    (Part.KUBELET, "1.34.1", "1.36.9"),
    (Part.KUBE_PROXY, "1.34.1", "1.36.9"),
]
"""The same beside API servers 1.37.1 and 1.36.4: the policy's notes on servers of two versions."""


def moved(version: str, minors: int) -> str:
    major, middle, patch = numbers(version)
    return f"{major}.{middle + minors}.{patch}"


def test_every_part_has_its_row() -> None:
    assert [part for part, *_ in BESIDE_ONE] == list(Part)


@pytest.mark.parametrize(("part", "server", "oldest", "newest"), BESIDE_ONE)
def test_a_part_beside_one_api_server(part: Part, server: str, oldest: str, newest: str) -> None:
    for own in {oldest, server, newest}:
        assert wrong_skew(part, own, [server]) == ""
    for own in (moved(oldest, -1), moved(newest, 1)):
        wrong = wrong_skew(part, own, [server])
        assert own in wrong
        assert minor(server) in wrong


@pytest.mark.parametrize(("part", "oldest", "newest"), BESIDE_TWO)
def test_a_part_beside_two_api_servers_may_be_what_both_allow(part: Part, oldest: str, newest: str) -> None:
    for servers in (["1.37.1", "1.36.4"], ["1.36.4", "1.37.1"]):
        assert [wrong_skew(part, own, servers) for own in (oldest, newest)] == ["", ""]
        assert wrong_skew(part, moved(oldest, -1), servers)
        assert wrong_skew(part, moved(newest, 1), servers)


def test_patches_do_not_count() -> None:
    assert wrong_skew(Part.KUBELET, "1.36.9", ["1.36.0"]) == ""
    assert wrong_step("1.36.0", "1.36.9") == ""


def test_another_major_version_is_never_beside_this_one() -> None:
    assert "different major" in wrong_skew(Part.KUBELET, "1.36.0", ["2.0.0"])
    assert wrong_step("1.36.0", "2.0.0")


def test_no_api_server_says_nothing() -> None:
    assert wrong_skew(Part.KUBELET, "1.36.4", []) == ""


minors = st.integers(0, 99)


@given(now=minors, wanted=minors)
def test_a_cluster_goes_one_minor_at_a_time_up_and_down(now: int, wanted: int) -> None:
    wrong = wrong_step(f"1.{now}.4", f"1.{wanted}.2")
    assert (wrong == "") is (abs(now - wanted) <= 1)
    if wrong:
        assert wrong.endswith(f"the next is 1.{now + (1 if wanted > now else -1)}")


def test_the_way_back_is_to_the_older_one_of_two_patches_too() -> None:
    assert is_back("1.36.4", "1.36.3")
    assert is_back("1.36.4", "1.35.9")
    assert not is_back("1.35.10", "1.35.10")
    assert not is_back("1.35.9", "1.35.10")


@pytest.mark.parametrize("text", ["1.36", "v1.36.4", "1.36.4-rc.1", "one.two.three", ""])
def test_what_a_spec_may_not_say(text: str) -> None:
    assert not is_version(text)


def test_a_version_is_read_with_and_without_its_v() -> None:
    assert numbers("v1.36.4") == numbers("1.36.4") == (1, 36, 4)
    with pytest.raises(ValueError, match=r"isn't major\.minor\.patch"):
        numbers("1.36")


def test_the_table_holds_two_minors_in_turn_and_the_pinned_one_last() -> None:
    found = [numbers(release.tested)[:2] for release in SUPPORTED.values()]
    assert [f"1.{middle}" for _, middle in found] == list(SUPPORTED)
    assert all(second[1] - first[1] == 1 for first, second in itertools.pairwise(found))
    assert list(SUPPORTED)[-1] == minor(versions.KUBERNETES)
