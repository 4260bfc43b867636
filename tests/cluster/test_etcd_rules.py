"""Quorum arithmetic compared with every possible loss of members."""

import copy
from itertools import combinations
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster.check import check
from cluster.check.etcd import quorum
from cluster.spec import Cluster, ClusterSpec

SPEC = yaml.safe_load((Path(__file__).parents[1] / "specs" / "valid-smallest.yaml").read_text())


def codes(**main: object) -> set[str]:
    data = copy.deepcopy(SPEC)
    data["control_plane"]["zones"] = main.pop("zones", [1, 2, 3])
    data["etcd"]["main"] |= main
    return {problem.code for problem in check(Cluster(spec=ClusterSpec.model_validate(data)))}


@given(st.integers(1, 40))
def test_a_quorum_is_the_smallest_number_of_which_two_always_share_a_member(members: int) -> None:
    votes = quorum(members)
    assert 2 * votes > members >= 2 * (votes - 1)


@given(st.integers(1, 40))
def test_an_even_number_of_members_is_refused_and_survives_no_more_losses(members: int) -> None:
    refused = "ETC-001" in codes(members=members)
    survives = members - quorum(members)
    before = members - 1 - quorum(members - 1)
    assert refused is (members % 2 == 0)
    assert not refused or survives == before


@given(st.sampled_from([3, 5, 7]), st.integers(1, 8))
def test_zones_are_refused_when_losing_one_leaves_no_quorum(members: int, zones: int) -> None:
    placed = [index % zones for index in range(members)]
    fatal = any(sum(zone != lost for zone in placed) < quorum(members) for lost in set(placed))
    assert ("ETC-006" in codes(members=members, zones=list(range(1, zones + 1)))) is fatal


def test_quorums_of_five_members_always_share_one() -> None:
    assert all(
        set(one) & set(other)
        for one in combinations(range(5), quorum(5))
        for other in combinations(range(5), quorum(5))
    )


@given(st.integers(1, 2000), st.integers(0, 20_000))
def test_an_election_timeout_has_at_least_five_heartbeats(heartbeat: int, election: int) -> None:
    reported = codes(heartbeat_interval=f"{heartbeat}ms", election_timeout=f"{election}ms")
    assert ("ETC-007" in reported) is (election < 5 * heartbeat)
