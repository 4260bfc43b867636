from __future__ import annotations

from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st

from cluster.check import check
from cluster.subnets import region_subnets, worker_ranges, zone_subnets
from components.control_plane.serving import settings
from network.addresses import plan


def counted(api_servers, main, events, nodes="10.77.0.0/24", hosts="dedicated"):
    return {
        "control_plane": {"api_servers": api_servers},
        "etcd": {"main": {"members": main}, "events": {"members": events, "hosts": hosts}},
        "network": {"nodes": nodes},
    }


def test_the_lab_has_the_addresses_of_its_networks(lab):
    addresses = plan(lab)
    assert (addresses.endpoint, [str(address) for address in addresses.balancers]) == ("10.77.0.10", ["10.77.0.10"])
    assert [(host.name, str(host.address)) for host in addresses.hosts()] == [
        ("api-1", "10.77.0.11"),
        ("api-2", "10.77.0.12"),
        ("etcd-main-1", "10.77.0.21"),
        ("etcd-main-2", "10.77.0.22"),
        ("etcd-main-3", "10.77.0.23"),
        ("etcd-events-1", "10.77.0.31"),
        ("etcd-events-2", "10.77.0.32"),
        ("etcd-events-3", "10.77.0.33"),
    ]
    assert (str(addresses.service_ip), str(addresses.dns_ip)) == ("10.201.0.1", "10.201.0.10")


def test_members_of_one_etcd_are_spread_over_the_zones(lab):
    addresses = plan(lab)
    assert [host.zone for host in addresses.etcd["main"]] == ["1", "2", "3"]
    assert [host.zone for host in addresses.etcd["events"]] == ["1", "2", "3"]


def test_the_dns_address_of_the_spec_is_used(build):
    assert plan(build({"network": {"dns_ip": "10.201.3.3"}})).dns_ip == IPv4Address("10.201.3.3")


def test_events_on_the_hosts_of_main_uses_no_extra_addresses(build):
    addresses = plan(build(counted(2, 5, 3, hosts="main")))
    assert addresses.etcd["events"] == addresses.etcd["main"][:3]
    assert len(addresses.hosts()) == 2 + 5


counts = st.integers(min_value=1, max_value=130)
members = st.sampled_from([1, 3, 5, 7])
ranges = st.integers(min_value=8, max_value=30).map(lambda prefix: f"10.0.0.0/{prefix}")
placements = st.sampled_from(["dedicated", "main"])
CLOUDS = {
    "aws": {"region": "us-east-1", "zones": [f"us-east-1{letter}" for letter in "abcdef"]},
    "azure": {"region": "eastus", "zones": [1, 2, 3]},
    "gcp": {"region": "us-central1", "zones": ["us-central1-a", "us-central1-b"]},
    "lab": {},
}
clouds = st.sampled_from(sorted(CLOUDS))


def in_cloud(spec, cloud, zones=6):
    place = CLOUDS[cloud]
    listed = {"zones": place["zones"][:zones]} if place else {}
    return {**spec, "control_plane": spec["control_plane"] | {"cloud": cloud} | place | listed}


@given(clouds, counts, members, members, ranges, placements)
def test_every_host_has_its_own_address_in_the_range_or_the_spec_is_refused(
    build, cloud, api_servers, main, events, nodes, hosts
):
    cluster = build(in_cloud(counted(api_servers, main, events, nodes, hosts), cloud))
    if {problem.code for problem in check(cluster)} & {"NET-010", "ETC-003"}:
        prefix = cluster.spec.network.nodes.prefixlen
        roomy = prefix <= 24 and api_servers <= 10 if cloud == "lab" else 16 <= prefix <= 20 and api_servers <= 18
        far = cloud == "lab" and prefix < 23  # a lab reaches 253 addresses
        assert not roomy or far or (hosts == "main" and events > main)
        return
    addresses = plan(cluster)
    taken = [*addresses.balancers, *(host.address for host in addresses.hosts())]
    assert len(set(taken)) == len(taken)
    assert len({host.name for host in addresses.hosts()}) == len(addresses.hosts())
    for address in taken:
        assert address in addresses.nodes
        assert address not in (addresses.nodes.network_address, addresses.nodes.broadcast_address)


@given(clouds, members, members, st.integers(16, 20), st.integers(1, 6))
def test_in_a_cloud_every_fixed_address_is_in_the_subnet_of_its_role_and_zone(
    build, cloud, main, events, prefix, zones
):
    if cloud == "lab":
        return
    cluster = build(in_cloud(counted(2, main, events, f"10.32.0.0/{prefix}"), cloud, zones))
    if any(problem.code == "NET-010" for problem in check(cluster)):
        return
    addresses = plan(cluster)
    if cloud == "aws":
        by_zone = {zone.zone: zone for zone in zone_subnets(cluster.spec)}
        places = [(host.address, by_zone[host.zone].etcd) for host in addresses.hosts()]
        places += [
            (address, by_zone[zone].api_servers) for zone, address in zip(by_zone, addresses.balancers, strict=True)
        ]
    else:
        subnets = region_subnets(cluster.spec)
        places = [(host.address, subnets.etcd) for host in addresses.hosts()]
        places += [(address, subnets.api_servers) for address in addresses.balancers]
    for address, subnet in places:
        # The cloud reserves the last address of a subnet, and Google Cloud also the second to last.
        assert subnet[4] <= address < subnet[-1 if cloud == "aws" else -2]
    assert addresses.endpoint == "api.lab.internal"
    assert addresses.api_servers == ()


def test_hosts_outside_the_spec_have_addresses_in_workers_subnets_if_the_region_has_workers(lab, build):
    assert settings(lab, plan(lab))["workers"] == []
    pools = {"pools": {"cpu": {"machine": "m", "min": 0, "max": 3}}, "network": {"nodes": "10.40.0.0/16"}}
    region = build({"pools": {"cpu": {"machine": "m", "min": 1, "max": 1}}})
    assert settings(region, plan(region))["workers"] == ["10.77.0.128/25"]
    azure = build(in_cloud(counted(2, 3, 3, "10.40.0.0/16"), "azure") | {"pools": pools["pools"]})
    assert settings(azure, plan(azure))["workers"] == ["10.40.128.0/17"]
    aws = build(in_cloud(counted(2, 3, 3, "10.40.0.0/16"), "aws", 2) | {"pools": pools["pools"]})
    assert settings(aws, plan(aws))["workers"] == ["10.40.32.0/19", "10.40.64.0/19"]


@given(clouds, st.integers(1, 9), members, members, st.integers(16, 20))
def test_no_node_may_have_an_address_of_the_control_plane(build, cloud, api_servers, main, events, prefix):
    pools = {"cpu": {"machine": "m", "min": 0, "max": 3}}
    cluster = build(in_cloud(counted(api_servers, main, events, f"10.0.0.0/{prefix}"), cloud) | {"pools": pools})
    addresses = plan(cluster)
    control = [*addresses.balancers, *(host.address for host in addresses.hosts())]
    assert not [address for address in control for network in worker_ranges(cluster.spec) if address in network]


@given(clouds, st.integers(1, 8), st.sampled_from([1, 3, 5]), st.sampled_from([1, 3, 5]), st.integers(16, 20))
def test_adding_hosts_does_not_move_existing_hosts(build, cloud, api_servers, main, events, prefix):
    nodes = f"10.0.0.0/{prefix}"
    before = plan(build(in_cloud(counted(api_servers, main, events, nodes), cloud)))
    after = plan(build(in_cloud(counted(api_servers + 1, main + 2, events + 2, nodes), cloud)))
    assert set(before.hosts()) <= set(after.hosts())
    assert before.balancers == after.balancers


@given(st.integers(3, 6), st.sampled_from([3, 5]), st.integers(16, 20))
def test_adding_a_zone_after_the_third_does_not_move_members(build, zones, main, prefix):
    spec = counted(3, main, 3, f"10.0.0.0/{prefix}")
    before, after = (plan(build(in_cloud(spec, "aws", count))) for count in (3, zones))
    assert before.etcd == after.etcd
    assert after.balancers[:3] == before.balancers


@given(st.integers(8, 24))
def test_at_least_half_of_the_range_is_left_for_workers_in_the_cloud(build, prefix):
    cluster = build(counted(10, 9, 9, f"10.0.0.0/{prefix}"))
    last = max(int(host.address) for host in plan(cluster).hosts())
    nodes = cluster.spec.network.nodes
    assert last - int(nodes[0]) <= nodes.num_addresses // 2
