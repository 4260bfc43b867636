from __future__ import annotations

import json
import os
from dataclasses import asdict
from ipaddress import IPv4Address, IPv4Network
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.check import check
from cluster.load import check_paths
from cluster.sites import Vpn
from cluster.spec import Cloud
from cluster.vpn import GATEWAYS, tunnel_mss, tunnel_mtu
from network.vpn import tunnels

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "vpn" / "jaguar.json"
REAL = [cloud for cloud in Cloud if cloud is not Cloud.LAB]


def site(number, inside, routers=2, racks=1):
    ranges = {f"r{n}": f"10.{100 + number}.{n}.0/24" for n in range(racks)}
    edges = {
        f"e{n}": {"address": f"198.51.100.{10 * number + n}", "psk": {"secret": f"psk-{number}-{n}"}}
        for n in range(routers)
    }
    vpn = {"asn": 65010 + number, "inside": str(inside), "routers": edges, "allow_single_router": True}
    return {"racks": ranges, "vpn": vpn}


def joined(cloud, sites):
    return {"control_plane": {"cloud": cloud}, "sites": {"onprem": None} | sites}


def shape(cloud, routers, blocks):
    """Return sites whose ranges the gateway accepts. Each has its own /26, so up to eight routers."""
    gate = GATEWAYS[cloud]
    free = [subnet for block in gate.inside for subnet in block.subnets(new_prefix=26) if gate.takes(subnet)]
    places = dict.fromkeys(block % len(free) for block in blocks)
    chosen = zip(routers, places, strict=False)
    return cloud, {f"s{n}": site(n, free[place], count) for n, (count, place) in enumerate(chosen)}


SHAPES = st.builds(
    shape,
    cloud=st.sampled_from(list(Cloud)),
    routers=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    blocks=st.lists(st.integers(0, 1000), min_size=6, max_size=6),
)


@given(SHAPES)
def test_no_two_tunnels_share_an_address_and_all_are_in_ranges_that_the_cloud_allows(build, drawn):
    cloud, cluster = drawn[0], build(joined(*drawn))
    assert [str(problem) for problem in check(cluster) if problem.code.startswith("VPN")] == []
    plan, gate = tunnels(cluster), GATEWAYS[cluster.spec.control_plane.cloud]
    assert len(plan) == 2 * sum(len(one["vpn"]["routers"]) for one in drawn[1].values())
    for one, other in combinations(plan, 2):
        assert not one.cloud.address.network.overlaps(other.cloud.address.network)
        same_router = (one.site, one.router) == (other.site, other.router)
        assert (one.edge.address == other.edge.address) == (same_router and cloud is Cloud.AZURE)
    for tunnel in plan:
        link = tunnel.cloud.address.network
        assert gate.takes(link)
        assert gate.takes(tunnel.edge.address.network)
        if cloud is not Cloud.AZURE:
            assert link == tunnel.edge.address.network
            assert {tunnel.cloud.address.ip, tunnel.edge.address.ip} == set(link.hosts())
        assert tunnel.cloud.asn != tunnel.edge.asn


@given(SHAPES, st.data())
def test_adding_a_site_or_a_router_changes_no_other_addresses(build, drawn, data):
    cloud, sites = drawn
    before = tunnels(build(joined(cloud, sites)))
    left_out = data.draw(st.sampled_from(sorted(sites)))
    fewer = {name: one for name, one in sites.items() if name != left_out}
    kept = tuple(tunnel for tunnel in before if tunnel.site != left_out)
    assert tunnels(build(joined(cloud, fewer))) == kept
    shorter = {**sites[left_out]["vpn"], "routers": dict(list(sites[left_out]["vpn"]["routers"].items())[:-1])}
    if shorter["routers"]:
        less = tunnels(build(joined(cloud, sites | {left_out: sites[left_out] | {"vpn": shorter}})))
        assert set(less) < set(before)


def test_each_router_has_a_tunnel_to_each_end_of_the_gateway(build):
    plan = tunnels(build(joined("aws", {"onprem": site(1, "169.254.6.0/28")})))
    ends = [(tunnel.router, tunnel.gateway_end, str(tunnel.cloud.address), str(tunnel.edge.address)) for tunnel in plan]
    assert ends == [
        ("e0", 0, "169.254.6.1/30", "169.254.6.2/30"),
        ("e0", 1, "169.254.6.5/30", "169.254.6.6/30"),
        ("e1", 0, "169.254.6.9/30", "169.254.6.10/30"),
        ("e1", 1, "169.254.6.13/30", "169.254.6.14/30"),
    ]


def test_on_azure_both_tunnels_lead_to_a_routers_one_address(build):
    plan = tunnels(build(joined("azure", {"onprem": site(1, "169.254.21.0/28")})))
    ends = [(tunnel.router, tunnel.gateway_end, str(tunnel.cloud.address), str(tunnel.edge.address)) for tunnel in plan]
    assert ends == [
        ("e0", 0, "169.254.21.1/32", "169.254.21.2/32"),
        ("e0", 1, "169.254.21.5/32", "169.254.21.2/32"),
        ("e1", 0, "169.254.21.9/32", "169.254.21.10/32"),
        ("e1", 1, "169.254.21.13/32", "169.254.21.10/32"),
    ]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=20, unique=True))
def test_a_site_announces_only_its_racks(build, numbers):
    racks = {f"r{n}": f"10.90.{n}.0/24" for n in numbers}
    cluster = build(joined("gcp", {"s": site(1, "169.254.6.0/28") | {"racks": racks}}))
    for tunnel in tunnels(cluster):
        assert tunnel.cloud.announces == (cluster.spec.network.nodes,)
        routes = tunnel.edge.announces
        assert sum(route.num_addresses for route in routes) == 256 * len(racks)
        assert all(any(IPv4Network(rack).subnet_of(route) for route in routes) for rack in racks.values())


def test_a_site_without_a_vpn_has_no_tunnels(lab):
    assert tunnels(lab) == ()


@pytest.mark.parametrize(
    ("cloud", "underlay", "mtu", "mss"),
    [
        ("aws", 1500, 1438, 1398),  # AWS: AES-GCM-16 with NAT traversal
        ("aws", 9000, 1438, 1398),
        ("gcp", 1500, 1398, 1358),  # Google: 1406 for AEAD ciphers, less 8 for NAT traversal
        ("azure", 1500, 1400, 1350),
        ("azure", 1400, 1338, 1298),
        ("lab", 1500, 1438, 1398),
    ],
)
def test_packets_inside_have_the_size_that_the_cloud_documents(build, cloud, underlay, mtu, mss):
    onprem = site(1, "169.254.21.0/28")
    cluster = build(joined(cloud, {"onprem": onprem | {"vpn": onprem["vpn"] | {"underlay_mtu": underlay}}}))
    assert {(tunnel.mtu, tunnel.mss) for tunnel in tunnels(cluster)} == {(mtu, mss)}


@given(st.integers(1280, 9216), st.sampled_from(list(Cloud)))
def test_an_encrypted_packet_fits_the_path_to_the_gateway(build, underlay, cloud):
    spec = build(joined(cloud, {})).spec
    vpn = Vpn.model_validate(site(1, "169.254.21.0/28")["vpn"] | {"underlay_mtu": underlay})
    mtu = tunnel_mtu(spec, vpn)
    padded = -(-(mtu + 2) // 4) * 4
    assert 20 + 8 + 8 + 8 + padded + 16 <= min(underlay, GATEWAYS[cloud].outer_mtu)
    assert tunnel_mss(spec, vpn) + 40 <= mtu


@pytest.mark.parametrize("cloud", REAL)
def test_no_tunnel_uses_the_address_of_the_metadata_service(cloud):
    metadata = IPv4Address("169.254.169.254")
    assert not any(GATEWAYS[cloud].takes(IPv4Network((metadata, prefix), strict=False)) for prefix in range(16, 33))


def test_the_tunnels_of_jaguar_match_the_golden_file(monkeypatch):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    monkeypatch.chdir(ROOT / "tests" / "specs")
    (loaded,), problems = check_paths([Path("joined-jaguar.yaml")])
    assert problems == []
    text = json.dumps([asdict(tunnel) for tunnel in tunnels(loaded.cluster)], indent=2, default=str) + "\n"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text)
    assert GOLDEN.read_text() == text
