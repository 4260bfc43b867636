from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cluster.subnets import region_subnets, worker_ranges, zone_subnets

LETTERS = "abcdef"

prefixes = st.integers(16, 20)
zone_counts = st.integers(1, 6)


def spec(prefix, zones, main=3, events=3, hosts="dedicated"):
    return {
        "control_plane": {"cloud": "aws", "region": "us-east-1", "zones": [f"us-east-1{z}" for z in LETTERS[:zones]]},
        "etcd": {"main": {"members": main}, "events": {"members": events, "hosts": hosts}},
        "network": {"nodes": f"10.32.0.0/{prefix}"},
        "pools": {"cpu": {"machine": "m7i.large", "min": 0, "max": 3}},
    }


def test_a_zone_has_the_documented_subnets(build):
    first, second = zone_subnets(build(spec(16, 2)).spec)
    assert [str(subnet) for subnet in first.all()] == [
        "10.32.0.0/27",
        "10.32.0.32/28",
        "10.32.0.48/28",
        "10.32.32.0/19",
    ]
    assert [str(subnet) for subnet in second.all()] == [
        "10.32.0.64/27",
        "10.32.0.96/28",
        "10.32.0.112/28",
        "10.32.64.0/19",
    ]
    assert (first.zone, second.zone) == ("us-east-1a", "us-east-1b")


@given(prefixes, zone_counts)
def test_subnets_are_in_the_range_of_nodes_and_never_overlap(build, prefix, zones):
    cluster = build(spec(prefix, zones))
    made = zone_subnets(cluster.spec)
    subnets = [subnet for zone in made for subnet in zone.all()]
    assert len(made) == zones
    assert all(subnet.subnet_of(cluster.spec.network.nodes) for subnet in subnets)
    assert not [pair for pair in combinations(subnets, 2) if pair[0].overlaps(pair[1])]


@given(prefixes, zone_counts)
def test_worker_ranges_include_all_worker_subnets_and_no_others(build, prefix, zones):
    cluster = build(spec(prefix, zones))
    ranges = worker_ranges(cluster.spec)
    for zone in zone_subnets(cluster.spec):
        assert any(zone.workers.subnet_of(network) for network in ranges)
        others = (zone.api_servers, zone.etcd, zone.public)
        assert not [other for other in others if any(other.overlaps(network) for network in ranges)]


@given(prefixes, zone_counts)
def test_an_additional_zone_moves_no_subnet(build, prefix, zones):
    before, after = (zone_subnets(build(spec(prefix, count)).spec) for count in (zones, zones + 1))
    assert after[: len(before)] == before


def test_a_region_has_the_documented_subnets(build):
    made = region_subnets(build(spec(16, 2)).spec)
    assert [str(subnet) for subnet in made.all()] == [
        "10.32.0.0/26",
        "10.32.0.64/26",
        "10.32.0.128/26",
        "10.32.0.192/26",
        "10.32.128.0/17",
    ]
    assert str(made.balancer) == "10.32.0.4"


@given(prefixes)
def test_the_subnets_of_a_region_are_in_the_range_of_nodes_and_never_overlap(build, prefix):
    cluster = build(spec(prefix, 3))
    subnets = region_subnets(cluster.spec).all()
    assert all(subnet.subnet_of(cluster.spec.network.nodes) for subnet in subnets)
    assert not [pair for pair in combinations(subnets, 2) if pair[0].overlaps(pair[1])]
