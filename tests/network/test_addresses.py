from __future__ import annotations

from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st

from cluster.check import check
from cluster.layout import section_size
from network.addresses import node_ranges, plan


def counted(api_servers, main, events, nodes="10.77.0.0/24", hosts="dedicated"):
    return {
        "control_plane": {"api_servers": api_servers},
        "etcd": {"main": {"members": main}, "events": {"members": events, "hosts": hosts}},
        "network": {"nodes": nodes},
    }


def test_the_lab_has_the_addresses_that_its_networks_are_built_for(lab):
    made = plan(lab)
    assert (str(made.gateway), str(made.endpoint)) == ("10.77.0.1", "10.77.0.10")
    assert [(host.name, str(host.address)) for host in made.hosts()] == [
        ("api-1", "10.77.0.11"),
        ("api-2", "10.77.0.12"),
        ("etcd-main-1", "10.77.0.21"),
        ("etcd-main-2", "10.77.0.22"),
        ("etcd-main-3", "10.77.0.23"),
        ("etcd-events-1", "10.77.0.31"),
        ("etcd-events-2", "10.77.0.32"),
        ("etcd-events-3", "10.77.0.33"),
    ]
    assert (str(made.service_ip), str(made.dns_ip)) == ("10.201.0.1", "10.201.0.10")


def test_members_of_one_etcd_are_spread_over_the_zones(lab):
    made = plan(lab)
    assert [host.zone for host in made.etcd["main"]] == ["1", "2", "3"]
    assert [host.zone for host in made.etcd["events"]] == ["1", "2", "3"]


def test_the_dns_address_of_the_spec_wins(build):
    assert plan(build({"network": {"dns_ip": "10.201.3.3"}})).dns_ip == IPv4Address("10.201.3.3")


def test_events_on_the_hosts_of_main_take_no_addresses_of_their_own(build):
    made = plan(build(counted(2, 5, 3, hosts="main")))
    assert made.etcd["events"] == made.etcd["main"][:3]
    assert len(made.hosts()) == 2 + 5


counts = st.integers(min_value=1, max_value=130)
ranges = st.integers(min_value=8, max_value=30).map(lambda prefix: f"10.0.0.0/{prefix}")
placements = st.sampled_from(["dedicated", "main"])


@given(counts, counts, counts, ranges, placements)
def test_every_host_has_an_address_of_its_own_inside_the_range_or_the_spec_is_refused(
    build, api_servers, main, events, nodes, hosts
):
    spec = counted(api_servers, main, events, nodes, hosts)
    spec["control_plane"] |= {"cloud": "aws"}  # a lab reaches fewer addresses
    cluster = build(spec)
    if {problem.code for problem in check(cluster)} & {"NET-010", "ETC-003"}:
        section = section_size(cluster.spec.network.nodes)
        fits = max(api_servers, main, events) <= section and cluster.spec.network.nodes.prefixlen <= 24
        assert not fits or (hosts == "main" and events > main)
        return
    made = plan(cluster)
    taken = [made.gateway, made.endpoint, *(host.address for host in made.hosts())]
    assert len(set(taken)) == len(taken)
    assert len({host.name for host in made.hosts()}) == len(made.hosts())
    usable = set(range(int(made.nodes[0]) + 1, int(made.nodes[-1]))) if made.nodes.prefixlen >= 22 else None
    for address in taken:
        assert address in made.nodes
        assert address not in (made.nodes.network_address, made.nodes.broadcast_address)
        assert usable is None or int(address) in usable


def test_nodes_stand_in_racks_and_only_with_workers_in_the_cloud_also_there(lab, build):
    assert [str(network) for network in node_ranges(lab)] == ["10.78.1.0/24", "10.78.2.0/24"]
    cloud = build({"pools": {"cpu": {"machine": "m", "min": 0, "max": 3}}})
    assert [str(network) for network in node_ranges(cloud)][:3] == ["10.77.0.41/32", "10.77.0.42/31", "10.77.0.44/30"]


@given(st.integers(1, 10), st.integers(1, 9), st.integers(1, 9), st.integers(8, 24))
def test_no_node_may_have_an_address_of_the_control_plane(build, api_servers, main, events, prefix):
    pools = {"cpu": {"machine": "m", "min": 0, "max": 3}}
    cluster = build(counted(api_servers, main, events, f"10.0.0.0/{prefix}") | {"pools": pools})
    made = plan(cluster)
    control = [made.gateway, made.endpoint, *(host.address for host in made.hosts())]
    assert not [address for address in control for network in node_ranges(cluster) if address in network]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(8, 24))
def test_adding_hosts_moves_no_host_that_was_there(build, api_servers, main, events, prefix):
    nodes = f"10.0.0.0/{prefix}"
    before = plan(build(counted(api_servers, main, events, nodes)))
    after = plan(build(counted(api_servers + 1, main + 1, events + 1, nodes)))
    assert set(before.hosts()) <= set(after.hosts())
    assert before.endpoint == after.endpoint


@given(st.integers(8, 24))
def test_at_least_half_of_the_range_is_left_for_workers_in_the_cloud(build, prefix):
    cluster = build(counted(10, 9, 9, f"10.0.0.0/{prefix}"))
    last = max(int(host.address) for host in plan(cluster).hosts())
    nodes = cluster.spec.network.nodes
    assert last - int(nodes[0]) <= nodes.num_addresses // 2
