"""Settings for edge routers, with fake stacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cluster.errors import RefusedError
from cluster.spec import Cluster
from operations import gateways

ENDS = ("203.0.113.1", "203.0.113.2")


def joined(build, name: str, inside: str, host: str | None = "10.8.1.1", nodes: str = "10.66.0.0/24") -> Cluster:
    router = {"address": "198.51.100.1", "psk": {"secret": f"psk-{name}"}, **({"host": host} if host else {})}
    vpn = {"asn": 65010, "inside": inside, "routers": {"e": router}}
    site = {"racks": {"r1": "10.8.1.0/24"}, "vpn": vpn}
    settings = {"cloud": "aws"}
    return build(
        {"name": name, "control_plane": settings, "network": {"nodes": nodes}, "sites": {"onprem": None, "s": site}}, {}
    )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, build) -> SimpleNamespace:
    """Two clusters with a common router, both built and with keys."""
    made = SimpleNamespace(
        one=joined(build, "one", "169.254.6.0/29"),
        two=joined(build, "two", "169.254.6.8/29", nodes="10.70.0.0/24"),
        built={"one", "two"},
        names={},
        keys={"psk-one": "first.key", "psk-two": "second.key"},
    )

    def known(cluster: Cluster, _: Any) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
        return {"s/e": ENDS} if cluster.name in made.built else {}, made.names.get(cluster.name, {})

    monkeypatch.setattr(gateways, "_others", lambda cluster: [made.two] if cluster is made.one else [made.one])
    monkeypatch.setattr(gateways, "gateway_addresses", known)
    monkeypatch.setattr(gateways, "kept_secret", lambda cluster, name, _: made.keys.get(name))
    return made


def plan(world: SimpleNamespace, *without: str) -> gateways.GatewayWork:
    return gateways.plan(world.one, without, lambda _: None)


def test_a_router_gets_the_tunnels_and_keys_of_every_cluster_that_it_joins(world) -> None:
    work = plan(world)
    (router,) = work.routers
    assert [line.name for line in router.lines] == ["one-0", "one-1", "two-0", "two-1"]
    own = work.inventory.data["all"]["hosts"]["s-e"]
    assert own["ansible_host"] == "10.8.1.1"
    assert own["vpn_gateway_keys"].count("secret = 0s") == 4
    assert "first.key" not in repr(work)


def test_a_cluster_with_an_unknown_gateway_stops_it_unless_it_is_left_out(world) -> None:
    world.built = {"one"}
    with pytest.raises(RefusedError, match="gateway of two.*--without two"):
        plan(world)
    (router,) = plan(world, "two").routers
    assert {line.cluster for line in router.lines} == {"one"}


def test_a_missing_key_is_reported_with_the_command_that_stores_it(world) -> None:
    del world.keys["psk-two"]
    with pytest.raises(RefusedError, match="menagerie secret two psk-two"):
        plan(world)


def test_routers_of_others_are_not_configured(world, build) -> None:
    world.one = joined(build, "one", "169.254.6.0/29", host=None)
    with pytest.raises(RefusedError, match="set sites.<site>.vpn.routers.<router>.host"):
        plan(world)


def test_the_settings_of_a_tunnel_have_all_that_a_router_needs_and_no_key(world) -> None:
    first, second = gateways.tunnel_settings(world.one, {"s/e": ENDS})
    assert (first["gateway_address"], second["gateway_address"]) == ENDS
    assert first["inside"] == {"router": "169.254.6.2/30", "gateway": "169.254.6.1/30"}
    assert first["bgp"] == {
        "router_asn": 65010, "gateway_asn": 64512, "keepalive_s": 10, "hold_s": 30,
        "announce": ["10.8.1.0/24"], "accept": ["10.66.0.0/24"],
    }  # fmt: skip
    assert first["key"] == "psk-one"
    assert gateways.tunnel_settings(world.one, {})[0]["gateway_address"] is None


def test_a_cluster_without_tunnels_says_so(lab) -> None:
    with pytest.raises(RefusedError, match="no site in its spec has a vpn"):
        gateways.tunnel_settings(lab, {})


def test_a_router_has_the_variables_of_all_its_clusters(world, monkeypatch) -> None:
    given = {
        "one": {"vpn_gateway_packages": []},
        "two": {"vpn_gateway_unsettable": "report", "ansible_host": "10.9.9.9"},
    }
    monkeypatch.setattr(gateways, "given_to_routers", lambda cluster, *_: given[cluster.name])
    own = plan(world).inventory.data["all"]["hosts"]["s-e"]
    assert (own["vpn_gateway_packages"], own["vpn_gateway_unsettable"]) == ([], "report")
    assert own["ansible_host"] == "10.8.1.1"
    assert "vpn_gateway_unsettable" not in plan(world, "two").inventory.data["all"]["hosts"]["s-e"]


def test_clusters_that_give_a_router_different_variables_are_both_named(world, monkeypatch) -> None:
    given = {"one": {"vpn_gateway_packages": []}, "two": {"vpn_gateway_packages": ["frr"]}}
    monkeypatch.setattr(gateways, "given_to_routers", lambda cluster, *_: given[cluster.name])
    with pytest.raises(RefusedError, match="vpn_gateway_packages of edge router s-e .* one .* two"):
        plan(world)
    plan(world, "two")
