from __future__ import annotations

import copy
from functools import reduce
from operator import getitem

import pytest

from cluster.check import Checked, check, check_all
from cluster.mtu import paths, pod_mtu
from cluster.positions import nowhere
from cluster.spec import Cloud
from cluster.vpn import GATEWAYS
from network.vpn import tunnels
from tests.cluster.test_mutations import VALUES, places


def vpn(inside="169.254.21.0/28", asn=65010, first="203.0.113.10", **more):
    routers = {"a": first, "b": "203.0.113.20"}
    made = {name: {"address": address, "psk": {"secret": f"psk-{name}"}} for name, address in routers.items()}
    return {"asn": asn, "inside": inside, "routers": made} | more


def joined(build, cloud="azure", **settings):
    return build({"control_plane": {"cloud": cloud}, "sites": {"onprem": {"vpn": vpn(**settings)}}})


def messages(cluster, others=()):
    problems = check(cluster, others)
    return [(problem.code, problem.message) for problem in problems if problem.code.startswith("VPN")]


@pytest.mark.parametrize(
    ("cloud", "inside", "why"),
    [
        ("aws", "169.254.0.0/28", "overlaps 169.254.0.0/30, which aws reserves"),
        ("aws", "169.254.5.0/28", "overlaps 169.254.5.0/30, which aws reserves"),
        ("aws", "169.254.4.0/22", "overlaps 169.254.4.0/30, which aws reserves"),
        ("aws", "169.254.6.0/28", ""),
        ("aws", "169.254.169.240/28", "overlaps 169.254.169.252/30, which aws reserves"),
        ("gcp", "169.254.0.0/28", ""),
        ("gcp", "169.254.169.240/28", "overlaps 169.254.169.252/30, which gcp reserves"),
        ("azure", "169.254.20.240/28", "isn't in 169.254.21.0/24 or 169.254.22.0/24"),
        ("azure", "169.254.20.0/22", "isn't in 169.254.21.0/24 or 169.254.22.0/24"),
        ("azure", "169.254.22.240/28", ""),
    ],
)
def test_each_cloud_has_its_own_ranges_for_tunnels(build, cloud, inside, why):
    refusals = messages(joined(build, cloud, inside=inside))
    assert [code for code, _ in refusals] == (["VPN-006"] if why else [])
    assert all(why in message for _, message in refusals)


@pytest.mark.parametrize("cloud", Cloud)
def test_a_suggested_range_is_accepted(cloud):
    gate, taken = GATEWAYS[cloud], []
    for prefix in (29, 28, 24, 27, 30):
        network = gate.free(prefix, taken)
        assert gate.takes(network)
        assert network.prefixlen == prefix
        assert not any(network.overlaps(other) for other in taken)
        taken.append(network)
    assert gate.free(15, []) is None
    assert gate.free(30, gate.inside) is None


@pytest.mark.parametrize("cloud", Cloud)
def test_an_asn_of_the_cloud_or_its_gateway_is_refused(build, cloud):
    assert messages(joined(build, cloud)) == []
    for asn in (GATEWAYS[cloud].asn, 23456, 65535, 65551):
        ((code, message),) = messages(joined(build, cloud, asn=asn))
        assert code == "VPN-005"
        assert str(asn) in message
    azure = cloud is Cloud.AZURE
    assert [code for code, _ in messages(joined(build, cloud, asn=12076))] == (["VPN-005"] if azure else [])
    assert [code for code, _ in messages(joined(build, cloud, asn=7224))] == (["VPN-005"] if cloud is Cloud.AWS else [])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"inside": "169.254.22.0/28"}, []),
        ({}, ["VPN-006"]),
        ({"inside": "169.254.22.0/28", "asn": 65011}, ["VPN-001", "VPN-001"]),
        ({"inside": "169.254.22.0/28", "asn": 65011, "first": "203.0.113.11"}, ["VPN-001"]),
    ],
)
def test_a_router_may_join_two_clusters_with_one_asn_and_separate_addresses(build, settings, expected):
    assert [code for code, _ in messages(joined(build, **settings), [joined(build)])] == expected


def test_one_shared_router_of_two_is_enough_for_a_clash(build):
    assert [code for code, _ in messages(joined(build, first="203.0.113.11"), [joined(build)])] == ["VPN-006"]


def test_clusters_whose_routers_differ_may_have_the_same_addresses_inside(build):
    other = build({"name": "other", "sites": {"onprem": {"vpn": vpn()}}})
    mine = vpn()
    mine["routers"] = {
        name: one | {"address": f"198.51.100.{n}"} for n, (name, one) in enumerate(vpn()["routers"].items())
    }
    assert messages(build({"sites": {"onprem": {"vpn": mine}}}), [other]) == []


def test_clusters_that_clash_at_a_router_are_refused_if_loaded_together(build):
    first = joined(build)
    second = first.model_copy(update={"spec": first.spec.model_copy(update={"name": "ibis"})})
    problems = check_all([Checked(one, nowhere(one.name)) for one in (first, second)])
    assert [problem.code for problem in problems if problem.code.startswith("VPN")] == ["VPN-006"]


def test_one_router_is_enough_in_development_or_if_the_spec_allows_it(build):
    one = {"routers": dict(list(vpn()["routers"].items())[:1])}
    assert [code for code, _ in messages(joined(build, **one))] == ["VPN-002"]
    assert messages(joined(build, **one, allow_single_router=True)) == []
    develop = {"profile": "development", "sites": {"onprem": {"vpn": vpn() | one}}}
    assert messages(build({"control_plane": {"cloud": "azure"}} | develop)) == []


def test_a_lab_has_no_public_addresses(build):
    assert messages(joined(build, "lab", first="10.78.1.1")) == []
    for private in ("10.78.1.1", "100.64.0.1", "169.254.21.1", "224.1.1.1", "255.255.255.255", "127.0.0.1"):
        assert [code for code, _ in messages(joined(build, "gcp", first=private))] == ["VPN-007"]
    for public in ("8.8.8.8", "192.0.2.1", "198.51.100.1", "203.0.113.1"):
        assert messages(joined(build, "gcp", first=public)) == []


def test_a_site_without_a_vpn_is_reported_only_if_another_has_one(build, lab):
    assert messages(lab) == []
    second = {"racks": {"r9": "10.79.9.0/24"}, "vpn": vpn()}
    ((code, message),) = messages(build({"control_plane": {"cloud": "azure"}, "sites": {"second": second}}))
    assert code == "VPN-003"
    assert "onprem has 3 workers" in message
    assert messages(build({"sites": {"second": second}}, {})) == []


def test_a_possible_key_is_never_repeated(data, check):
    for written in ("hunter2hunter2", 8675309, ["hunter2"], {"secret": "Hunter2_x"}, {"secret": 8675309}, True):
        made = vpn()
        made["routers"]["a"]["psk"] = written
        data["sites"]["sjc1"]["vpn"] = made
        _, problems = check(data)
        assert [problem.code for problem in problems] == ["VPN-004"], written
        text = str(problems[0]) + str(problems[0].to_json())
        assert "unter2" not in text
        assert "8675309" not in text


def test_an_omitted_key_is_reported_as_missing(data, check):
    for written, code in ((None, "VPN-009"), ({}, "CFG-013"), ({"secret": None}, "CFG-013")):
        data["sites"]["sjc1"]["vpn"] = vpn()
        data["sites"]["sjc1"]["vpn"]["routers"]["a"]["psk"] = written
        assert [problem.code for problem in check(data)[1]] == [code]


def test_a_tunnel_limits_the_mtu_to_the_cloud_but_not_inside_the_site(build):
    wide = {"network": {"link_mtu": 9000}, "sites": {"onprem": {"link_mtu": 9000, "uplink_mtu": 9000, "vpn": vpn()}}}
    cluster = build(wide | {"control_plane": {"cloud": "azure"}})
    rooms = {path.name: path.room for path in paths(cluster.spec)}
    assert rooms["between racks of onprem"] == 8950
    assert rooms["from pods in onprem to the API servers"] == 1400
    assert pod_mtu(cluster.spec) == 1400
    both = build(wide | {"control_plane": {"cloud": "azure"}, "pools": {"cpu": {"machine": "m", "max": 1}}})
    assert pod_mtu(both.spec) == 1350


def test_any_value_for_any_field_gives_problems_or_tunnels(data, check):
    data["sites"]["sjc1"]["vpn"] = vpn()
    for place in places(data["sites"]["sjc1"]["vpn"], ("sites", "sjc1", "vpn")):
        for value in VALUES:
            changed = copy.deepcopy(data)
            holder = reduce(getitem, place[:-1], changed)
            holder[place[-1]] = value
            loaded, problems = check(changed)
            assert bool(loaded) is not any(problem.is_error for problem in problems), (place, value)
            assert all(problem.line and problem.hint for problem in problems)
            for one in loaded:
                assert len(tunnels(one.cluster)) == 4
