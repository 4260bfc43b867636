"""Releases of Kubernetes: every pair of versions that may, or may not, run together."""

from __future__ import annotations

import itertools

import pytest

from cluster import versions
from cluster.releases import SUPPORTED, Part, is_back, is_version, minor, numbers, wrong_skew, wrong_step

MINORS = tuple(range(30, 40))
PATCHED = {number: f"1.{number}.{number % 5}" for number in MINORS}
# From the Version Skew Policy, by hand: how many minors a part may be from an API server, older and newer.
POLICY = {
    Part.API_SERVER: range(-1, 2),
    Part.CONTROLLER_MANAGER: range(-1, 1),
    Part.SCHEDULER: range(-1, 1),
    Part.KUBELET: range(-3, 1),
    Part.KUBE_PROXY: range(-3, 1),
}


@pytest.mark.parametrize("part", list(Part))
@pytest.mark.parametrize("server", MINORS)
@pytest.mark.parametrize("own", MINORS)
def test_a_part_beside_one_api_server(part: Part, own: int, server: int) -> None:
    wrong = wrong_skew(part, PATCHED[own], [PATCHED[server]])
    assert (wrong == "") is (own - server in POLICY[part])
    assert wrong == "" or (PATCHED[own] in wrong and f"1.{server}" in wrong)


@pytest.mark.parametrize("part", list(Part))
@pytest.mark.parametrize(("older", "newer"), list(itertools.pairwise(MINORS)))
@pytest.mark.parametrize("own", MINORS)
def test_a_part_beside_two_api_servers_may_be_what_both_allow(part: Part, own: int, older: int, newer: int) -> None:
    both = [PATCHED[newer], PATCHED[older]]
    alone = [wrong_skew(part, PATCHED[own], [each]) == "" for each in both]
    assert (wrong_skew(part, PATCHED[own], both) == "") is all(alone)


def test_patches_do_not_count() -> None:
    assert wrong_skew(Part.KUBELET, "1.36.9", ["1.36.0"]) == ""
    assert wrong_step("1.36.0", "1.36.9") == ""


def test_another_major_version_is_never_beside_this_one() -> None:
    assert "different major" in wrong_skew(Part.KUBELET, "1.36.0", ["2.0.0"])
    assert wrong_step("1.36.0", "2.0.0")


def test_no_api_server_says_nothing() -> None:
    assert wrong_skew(Part.KUBELET, "1.36.4", []) == ""


@pytest.mark.parametrize("now", MINORS)
@pytest.mark.parametrize("wanted", MINORS)
def test_a_cluster_goes_one_minor_at_a_time_up_and_down(now: int, wanted: int) -> None:
    wrong = wrong_step(PATCHED[now], PATCHED[wanted])
    assert (wrong == "") is (abs(now - wanted) <= 1)
    if wrong:
        assert f"the next is 1.{now + (1 if wanted > now else -1)}" in wrong


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
