from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from network.addresses import node_ranges
from network.subnets import etcd_hosts, zone_subnets

LETTERS = "abcdef"

prefixes = st.integers(16, 20)
zone_counts = st.integers(1, 6)
members = st.integers(1, 5)


def spec(prefix, zones, main=3, events=3, hosts="dedicated"):
    return {
        "control_plane": {"cloud": "aws", "region": "us-east-1", "zones": [f"us-east-1{z}" for z in LETTERS[:zones]]},
        "etcd": {"main": {"members": main}, "events": {"members": events, "hosts": hosts}},
        "network": {"nodes": f"10.32.0.0/{prefix}"},
        "pools": {"cpu": {"machine": "m7i.large", "min": 0, "max": 3}},
    }


def test_a_zone_has_the_subnets_that_the_reference_shows(build):
    first, second = zone_subnets(build(spec(16, 2)))
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
def test_subnets_lie_in_the_range_of_nodes_and_never_overlap(build, prefix, zones):
    cluster = build(spec(prefix, zones))
    made = zone_subnets(cluster)
    subnets = [subnet for zone in made for subnet in zone.all()]
    assert len(made) == zones
    assert all(subnet.subnet_of(cluster.spec.network.nodes) for subnet in subnets)
    assert not [pair for pair in combinations(subnets, 2) if pair[0].overlaps(pair[1])]


@given(prefixes, zone_counts)
def test_workers_may_hold_certificates_for_their_subnets_and_for_no_other(build, prefix, zones):
    cluster = build(spec(prefix, zones))
    ranges = node_ranges(cluster)
    for zone in zone_subnets(cluster):
        assert any(zone.workers.subnet_of(network) for network in ranges)
        others = (zone.api_servers, zone.etcd, zone.public)
        assert not [other for other in others if any(other.overlaps(network) for network in ranges)]


@given(prefixes, zone_counts, members, members, st.sampled_from(["dedicated", "main"]))
@example(prefix=16, zones=1, main=6, events=5, hosts="dedicated")
def test_every_etcd_host_has_a_usable_address_of_its_own_in_the_subnet_of_its_zone(
    build, prefix, zones, main, events, hosts
):
    cluster = build(spec(prefix, zones, main, min(events, main), hosts))
    subnets = {zone.zone: zone.etcd for zone in zone_subnets(cluster)}
    placed = etcd_hosts(cluster)
    everyone = {host for role in placed.values() for host in role}
    assert (len(placed["main"]), len(placed["events"])) == (main, min(events, main))
    assert len({host.address for host in everyone}) == len({host.name for host in everyone}) == len(everyone)
    for host in everyone:
        assert host.address in list(subnets[host.zone])[4:-1]


@given(prefixes, st.integers(1, 5), st.integers(1, 3))
def test_a_zone_more_moves_no_subnet_and_a_member_more_no_host(build, prefix, zones, count):
    before = build(spec(prefix, zones, count, count))
    assert zone_subnets(build(spec(prefix, zones + 1)))[:zones] == zone_subnets(before)
    grown = etcd_hosts(build(spec(prefix, zones, count + 2, count + 2)))
    for role, hosts in etcd_hosts(before).items():
        assert grown[role][:count] == hosts


def test_what_has_no_room_is_refused_with_a_way_out(build):
    for prefix in (15, 21):
        with pytest.raises(ValueError, match="use a /16 to a /20"):
            zone_subnets(build(spec(prefix, 3)))
    crowded = spec(16, 6)
    crowded["control_plane"]["zones"].append("us-east-1g")
    with pytest.raises(ValueError, match="names 7 zones; network.nodes is cut for 6"):
        zone_subnets(build(crowded))
    with pytest.raises(ValueError, match="us-east-1a has 6 addresses for hosts of etcd-main, and none for etcd-main-7"):
        etcd_hosts(build(spec(16, 1, main=7)))
