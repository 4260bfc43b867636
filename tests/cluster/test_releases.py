"""Releases of Kubernetes: which versions of parts may run together, and the steps of an upgrade."""

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
"""(part, API server, oldest and newest version of the part): "Supported versions" of the Version Skew Policy."""
BESIDE_TWO = [
    (Part.CONTROLLER_MANAGER, "1.36.0", "1.36.9"),
    (Part.SCHEDULER, "1.36.0", "1.36.9"),
    (Part.KUBELET, "1.34.1", "1.36.9"),
    (Part.KUBE_PROXY, "1.34.1", "1.36.9"),
]
"""The same with API servers 1.37.1 and 1.36.4: the policy's notes on servers with two versions."""


def moved(version: str, minors: int) -> str:
    major, middle, patch = numbers(version)
    return f"{major}.{middle + minors}.{patch}"


def test_every_part_has_a_row() -> None:
    assert [part for part, *_ in BESIDE_ONE] == list(Part)


@pytest.mark.parametrize(("part", "server", "oldest", "newest"), BESIDE_ONE)
def test_skew_of_a_part_with_one_api_server(part: Part, server: str, oldest: str, newest: str) -> None:
    for own in {oldest, server, newest}:
        assert wrong_skew(part, own, [server]) == ""
    for own in (moved(oldest, -1), moved(newest, 1)):
        wrong = wrong_skew(part, own, [server])
        assert own in wrong
        assert minor(server) in wrong


@pytest.mark.parametrize(("part", "oldest", "newest"), BESIDE_TWO)
def test_skew_of_a_part_with_two_api_servers_must_suit_both(part: Part, oldest: str, newest: str) -> None:
    for servers in (["1.37.1", "1.36.4"], ["1.36.4", "1.37.1"]):
        assert [wrong_skew(part, own, servers) for own in (oldest, newest)] == ["", ""]
        assert wrong_skew(part, moved(oldest, -1), servers)
        assert wrong_skew(part, moved(newest, 1), servers)


def test_patch_versions_do_not_matter() -> None:
    assert wrong_skew(Part.KUBELET, "1.36.9", ["1.36.0"]) == ""
    assert wrong_step("1.36.0", "1.36.9") == ""


def test_different_major_versions_never_run_together() -> None:
    assert "different major" in wrong_skew(Part.KUBELET, "1.36.0", ["2.0.0"])
    assert wrong_step("1.36.0", "2.0.0")


def test_skew_without_api_servers_is_allowed() -> None:
    assert wrong_skew(Part.KUBELET, "1.36.4", []) == ""


minors = st.integers(0, 99)


@given(now=minors, target=minors)
def test_a_cluster_moves_one_minor_version_at_a_time_up_and_down(now: int, target: int) -> None:
    wrong = wrong_step(f"1.{now}.4", f"1.{target}.2")
    assert (wrong == "") is (abs(now - target) <= 1)
    if wrong:
        assert wrong.endswith(f"next to 1.{now + (1 if target > now else -1)}")


def test_a_downgrade_between_patch_versions_is_recognised() -> None:
    assert is_back("1.36.4", "1.36.3")
    assert is_back("1.36.4", "1.35.9")
    assert not is_back("1.35.10", "1.35.10")
    assert not is_back("1.35.9", "1.35.10")


@pytest.mark.parametrize("text", ["1.36", "v1.36.4", "1.36.4-rc.1", "one.two.three", ""])
def test_an_invalid_version_is_refused(text: str) -> None:
    assert not is_version(text)


def test_a_version_is_parsed_with_and_without_v() -> None:
    assert numbers("v1.36.4") == numbers("1.36.4") == (1, 36, 4)
    with pytest.raises(ValueError, match=r"isn't major\.minor\.patch"):
        numbers("1.36")


def test_supported_minors_are_consecutive_and_end_with_the_pinned_one() -> None:
    pairs = [numbers(release.tested)[:2] for release in SUPPORTED.values()]
    assert [f"1.{middle}" for _, middle in pairs] == list(SUPPORTED)
    assert all(second[1] - first[1] == 1 for first, second in itertools.pairwise(pairs))
    assert list(SUPPORTED)[-1] == minor(versions.KUBERNETES)
