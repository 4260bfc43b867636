"""The configuration of an edge router, from specs alone."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.spec import Cloud
from cluster.vpn import GATEWAYS
from inventories.gateways import COMPUTED, variables
from inventories.gateways import build as inventory
from network import frr, swanctl, tunnel_rules
from network.gateway import Joined, RouterConfig, routers
from tests.vpn.world import KEY

GOLDEN = Path(__file__).parents[1] / "golden" / "vpn" / "router"
SHOWN = ("rules", "connections", "daemon", "frr", "frr_daemons")


@pytest.mark.parametrize("name", SHOWN)
def test_the_files_of_a_router_of_two_clusters_match_the_golden_files(router: RouterConfig, name: str) -> None:
    """One cluster is on Azure, whose tunnels have no addresses, the other on AWS."""
    text = variables(router, {line.name: KEY for line in router.lines})[f"vpn_gateway_{name}"]
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_tunnel_has_its_own_interface_with_a_name_that_linux_accepts(router: RouterConfig) -> None:
    names = [line.interface for line in router.lines]
    numbers = [line.if_id for line in router.lines]
    assert len(set(names)) == len(set(numbers)) == len(names) == 4
    assert all(len(name) < 16 for name in names)
    assert all(numbers)


def test_dead_peers_are_noticed_before_any_gateway_drops_a_session() -> None:
    assert swanctl.DPD_DELAY_S + swanctl.give_up_s() < min(gateway.hold for gateway in GATEWAYS.values())


def test_keys_are_renewed_before_they_expire_and_sessions_end_after_three_missed_keepalives(
    router: RouterConfig,
) -> None:
    for gateway in GATEWAYS.values():
        assert gateway.keepalive * 3 == gateway.hold
        line = replace(router.lines[0], cloud=gateway)
        times = dict(re.findall(r"(\w+_time) = (\d+)s", swanctl.connections([line], "x").partition("children")[2]))
        assert int(times["rekey_time"]) < 0.9 * int(times["life_time"])


def joined(build, cloud: str, name: str, **vpn):
    settings = {
        "asn": 65010,
        "inside": "169.254.21.0/29",
        "routers": {"e": {"address": "198.51.100.1", "psk": {"secret": "k"}}},
        **vpn,
    }
    site = {"racks": {"r1": "10.8.1.0/24"}, "vpn": settings}
    return build({"name": name, "control_plane": {"cloud": cloud}, "sites": {"onprem": None, "s": site}}, {})


def test_a_router_without_a_known_gateway_is_left_out(build) -> None:
    cluster = joined(build, "aws", "one")
    assert routers([Joined(cluster, {})]) == ()
    half = routers([Joined(cluster, {"s/e": ("203.0.113.1",)})])
    assert [line.name for line in half[0].lines] == ["one-0"]


def test_only_managed_routers_are_in_the_inventory_and_each_gets_only_its_keys(build) -> None:
    both = {
        "a": {"address": "198.51.100.1", "psk": {"secret": "k"}, "host": "10.8.1.1"},
        "b": {"address": "198.51.100.2", "psk": {"secret": "l"}, "host": "10.8.1.2"},
        "c": {"address": "198.51.100.3", "psk": {"secret": "m"}},
    }
    cluster = joined(build, "aws", "one", routers=both, inside="169.254.21.0/27")
    ends = {f"s/{name}": ("203.0.113.1", "203.0.113.2") for name in both}
    keys = {f"s-{name}/one-{end}": f"key-{name}" for name, end in product("ab", (0, 1))}
    rendered = inventory("one", routers([Joined(cluster, ends)]), keys)
    assert rendered.hosts == ("s-a", "s-b")
    assert rendered.groups == {"gateways": ("s-a", "s-b")}
    texts = [rendered.data["all"]["hosts"][host]["vpn_gateway_keys"] for host in rendered.hosts]
    assert texts[0] != texts[1]
    assert "key-a" not in repr(rendered)


@given(cloud=st.sampled_from([cloud.value for cloud in Cloud]), hole=st.integers(0, 255), other=st.integers(0, 255))
def test_no_prefix_of_one_cluster_is_announced_to_another(build, cloud: str, hole: int, other: int) -> None:
    nodes = [f"10.{100 + hole % 50}.0.0/16", f"10.{160 + other % 50}.0.0/16"]
    specs = [
        Joined(joined(build, cloud, name, inside=inside), {"s/e": ("203.0.113.1", "203.0.113.2")})
        for name, inside in (("one", "169.254.21.0/29"), ("two", "169.254.21.8/29"))
    ]
    specs = [
        Joined(one.cluster.model_copy(update={"spec": _with_nodes(one.cluster.spec, range_)}), one.gateways)
        for one, range_ in zip(specs, nodes, strict=True)
    ]
    (router,) = routers(specs)
    text = frr.config(router)
    for line in text.splitlines():
        if line.startswith("ip prefix-list to-"):
            assert line.endswith("permit 10.8.1.0/24")
    assert f"ip prefix-list from-one seq 5 permit {nodes[0]} le 32" in text
    assert f"ip prefix-list from-two seq 5 permit {nodes[1]} le 32" in text
    forward = tunnel_rules.rules(router).split("chain forward")[1].split("chain input")[0].splitlines()
    assert forward[2].strip() == "iifname @tunnels oifname @tunnels drop"
    assert [line.strip() for line in forward if line.strip()][-3:-1] == [
        "iifname @tunnels drop",
        "oifname @tunnels drop",
    ]


def _with_nodes(spec, range_: str):
    return spec.model_copy(update={"network": spec.network.model_copy(update={"nodes": IPv4Network(range_)})})


def test_a_host_can_be_a_router_of_two_clusters(build, router: RouterConfig) -> None:
    assert (router.host, router.machine, router.asn) == (IPv4Address("10.8.1.1"), "sjc1-edge-1", 65010)
    assert {line.cluster for line in router.lines} == {"jaguar", "horus"}


def test_variables_from_specs_are_listed_as_computed(router: RouterConfig) -> None:
    assert set(variables(router, {line.name: KEY for line in router.lines})) == set(COMPUTED)
