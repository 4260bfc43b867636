"""Classes of traffic: every address has one, and the host's program takes what the model says."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from menagerie_traffic import plan

from cluster.load import load_cluster
from components.flows.hosts import of_sites
from network.traffic import ceph_ports, classes, without
from tests.flows.support import CEPH, VPN

ROOT = Path(__file__).parents[2]


def of(ranges: dict[str, list[str]], address: str) -> str:
    return next(
        (name for name, own in ranges.items() if any(IPv4Address(address) in IPv4Network(each) for each in own)),
        "internet",
    )


def test_the_other_end_decides(build) -> None:
    site = {"vpn": VPN | {"networks": ["10.50.0.0/16"]}}
    ranges = classes(build({"sites": {"onprem": site}}))
    spec = build().spec
    assert of(ranges, str(spec.network.pods[300])) == "pod"
    assert of(ranges, str(spec.network.services[1])) == "pod"
    assert of(ranges, str(spec.network.nodes[5])) == "region"
    assert of(ranges, "169.254.169.254") == "region"
    assert {of(ranges, str(rack[9])) for rack in spec.sites["onprem"].racks.values()} == {"site"}
    assert of(ranges, "10.50.3.4") == "site"
    assert of(ranges, "1.1.1.1") == "internet"


def test_racks_of_a_site_with_ceph_are_ranges_of_storage_and_no_host_is_named(build) -> None:
    cluster = build({"sites": {"onprem": {"ceph": CEPH}}})
    ranges = classes(cluster)
    assert {of(ranges, str(host.address)) for host in cluster.hosts["workers"]} == {"storage"}
    fewer = build({"sites": {"onprem": {"ceph": CEPH}}}, {"workers": cluster.hosts["workers"][:1]})
    assert classes(fewer) == ranges


def test_the_ports_are_those_that_the_firewalls_open_for_ceph(build) -> None:
    rules = of_sites(build({"sites": {"onprem": {"ceph": CEPH}}}))["firewall_rules"]
    assert ceph_ports() in [rule["ports"] for rule in rules]


def test_a_network_of_ceph_counts_whole_unless_it_is_part_of_a_rack(build) -> None:
    rack = str(next(iter(build().spec.sites["onprem"].racks.values())))
    networks = {"cluster": ["10.90.0.0/24"], "public": [rack]}
    ranges = classes(build({"sites": {"onprem": {"ceph": {**CEPH, "networks": networks}}}}))
    assert of(ranges, "10.90.0.77") == "ceph"
    assert of(ranges, str(IPv4Network(rack)[-2])) == "storage"


def test_azures_service_of_hosts_is_in_the_region(build) -> None:
    on_azure = {"control_plane": {"cloud": "azure", "region": "eastus"}}
    assert of(classes(build()), "168.63.129.16") == "internet"
    assert of(classes(build(on_azure)), "168.63.129.16") == "region"


def test_the_program_takes_the_classes_of_every_cluster(build) -> None:
    examples = [load_cluster(ROOT / "examples" / name / "cluster.yaml") for name in ("horus", "jaguar", "ibis")]
    for cluster in (build(), build({"sites": {"onprem": {"ceph": CEPH}}}), *examples):
        ranges = plan.intervals(classes(cluster))
        assert {each.of for each in ranges} <= {"pod", "ceph", "region", "site", plan.STORAGE}


_networks = st.builds(
    lambda number, length: IPv4Network((number << 24 >> (32 - length) << (32 - length), length)),
    st.integers(0, 255),
    st.integers(4, 12),
)


@given(st.lists(_networks, max_size=6), st.lists(_networks, max_size=6))
def test_what_is_left_is_in_the_first_and_not_in_the_second(own: list[IPv4Network], others: list[IPv4Network]) -> None:
    left = list(without(own, others))
    assert all(not one.overlaps(other) for index, one in enumerate(left) for other in (*left[:index], *others))
    corners = {each[at] for each in (*own, *others) for at in (0, -1)}
    corners |= {IPv4Address((int(each) + step) % (1 << 32)) for each in corners for step in (-1, 1)}
    for address in corners:
        expected = any(address in each for each in own) and not any(address in each for each in others)
        assert any(address in each for each in left) == expected
