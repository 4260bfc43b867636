from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.lab import plan
from sandbox.lab.plan import LabSpec

SPEC = LabSpec(
    cluster="lab",
    nodes="10.77.0.0/24",
    racks={"r1": "10.78.1.0/24", "r2": "10.78.2.0/24"},
    endpoint="10.77.0.10",
    endpoint_ports=(6443, 8132),
    image="/image",
    mirror="/mirror",
    crane="/crane",
    images="/images",
    rack_mtu=1400,
)
NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,60}[a-z0-9])?", fullmatch=True)


def test_the_router_has_the_first_address_of_every_network_except_the_stores() -> None:
    gateways = {name: segment.gateway for name, segment in plan.segments(SPEC).items()}
    assert gateways == {
        "cloud": IPv4Address("10.77.0.1"),
        "services": IPv4Address("10.79.1.1"),
        "store": None,
        "rack/r1": IPv4Address("10.78.1.1"),
        "rack/r2": IPv4Address("10.78.2.1"),
    }


def test_only_racks_have_the_sites_mtu() -> None:
    mtus = {name: segment.mtu for name, segment in plan.segments(SPEC).items()}
    assert mtus == {"cloud": 1500, "services": 1500, "store": 1500, "rack/r1": 1400, "rack/r2": 1400}


def test_workers_in_the_region_have_the_upper_half_as_a_separate_network() -> None:
    segments = plan.segments(replace(SPEC, workers="10.77.0.128/25"))
    by_name = {name: (str(segment.network), str(segment.gateway)) for name, segment in segments.items()}
    assert by_name["cloud"] == ("10.77.0.0/25", "10.77.0.1")
    assert by_name["workers"] == ("10.77.0.128/25", "10.77.0.129")
    assert "workers" not in plan.segments(SPEC)


def test_a_cloud_host_has_the_same_number_on_the_stores_network() -> None:
    assert plan.store_address("10.77.0.0/24", "10.77.0.11") == IPv4Address("10.79.2.11")


@pytest.mark.parametrize("address", ["10.77.0.2", "10.77.0.0", "10.77.1.11", "10.76.0.11"])
def test_an_address_without_a_free_counterpart_on_the_stores_network_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=address):
        plan.store_address("10.77.0.0/22", address)


@given(st.integers(min_value=3, max_value=254))
def test_no_host_shares_an_address_with_the_store(number: int) -> None:
    address = plan.store_address("10.77.0.0/24", str(IPv4Network("10.77.0.0/24")[number]))
    assert address in plan.STORE_RANGE
    assert address != plan.STORE_OWN_ADDRESS


@given(NAMES)
def test_a_bridge_of_any_rack_has_a_name_that_the_kernel_accepts(name: str) -> None:
    assert len(plan.interface("br-", plan.rack(name))) <= 15
    assert plan.interface("br-", plan.rack(name)) == plan.interface("br-", plan.rack(name))


@given(st.sets(NAMES, min_size=2, max_size=50))
def test_cables_of_different_hosts_have_different_names_and_hardware_addresses(hosts: set[str]) -> None:
    assert len({plan.port(host, "cloud") for host in hosts}) == len(hosts)
    assert len({plan.mac(host, "cloud") for host in hosts}) == len(hosts)


def test_a_hardware_address_is_local_and_not_multicast() -> None:
    first = int(plan.mac("api-1", "cloud").split(":")[0], 16)
    assert first & 0b11 == 0b10


def test_the_lab_lists_all_ranges_that_it_uses() -> None:
    assert {str(network) for network in SPEC.ranges().values()} == {
        "10.77.0.0/24",
        "10.78.1.0/24",
        "10.78.2.0/24",
        "10.79.1.0/24",
        "10.79.2.0/24",
        "10.79.3.0/30",
    }
