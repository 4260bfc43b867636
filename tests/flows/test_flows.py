from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given

from cluster.artefacts import ArtefactSource
from cluster.network import NODE_PORTS
from components.control_plane.ports import API_PORT
from components.flows.flow import CLOUD_SIDE, OWN, Protocol, Role, closed, into, out_of, roles
from components.flows.reference import reference
from components.flows.table import flows
from tests.flows.support import CEPH, ETCDS, PUBLIC, REGION, ROCE, SHAPES, VPN, WORKERS, between, ports_into

ROOT = Path(__file__).parents[2]
EVERYONE = {
    "control_plane": {"cloud": "aws", "operators": ["10.250.0.0/24"], "public": PUBLIC},
    "pools": REGION,
    "sites": {"onprem": {"vpn": VPN, "roce": ROCE, "ceph": CEPH}},
    "storage": {"file": True},
    "network": {"node_ports": {"outside": ["192.0.2.0/24"]}},
}


@given(SHAPES)
def test_api_servers_open_no_connections_to_workers_pods_each_other_or_the_load_balancer(build, changes):
    table = flows(build(changes))
    reached = {flow.destination for flow in out_of(table, Role.API_SERVER)} & OWN
    assert reached <= set(ETCDS)
    unreached = {*WORKERS, Role.POD, Role.API_SERVER, Role.LOAD_BALANCER} & set(roles(table))
    assert {(Role.API_SERVER, role) for role in unreached} <= set(closed(table))


@given(SHAPES)
def test_only_api_servers_the_operator_and_its_own_members_reach_an_etcd(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    for role in set(ETCDS) & set(roles(table)):
        assert {flow.source for flow in into(table, role)} == {Role.API_SERVER, Role.OPERATOR, role}
        peers = {cluster.spec.etcd.main.peer_port, cluster.spec.etcd.events.peer_port}
        assert {flow.source for flow in into(table, role) if peers & set(flow.ports)} == {role}


@given(SHAPES)
def test_only_operators_come_from_outside_and_log_in_only_at_sites(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    allowed = {Role.PUBLIC_OPERATOR} if cluster.spec.control_plane.public else set()
    allowed |= {Role.SERVICE_CLIENT} & set(roles(table))
    assert {flow.source for flow in table} - OWN == {Role.OPERATOR} | allowed
    ssh = cluster.spec.sites["onprem"].ssh.port
    assert {(f.source, f.destination) for f in table if ssh in f.ports} <= {(Role.OPERATOR, Role.WORKER_AT_SITE)}


def test_without_ranges_of_operators_nobody_is_let_into_the_region(build):
    """Firewalls do the same: they are made from the ranges in the spec."""
    plane = {"cloud": "aws", "public": PUBLIC}
    table = flows(build({"control_plane": plane, "pools": REGION}))
    assert {flow.destination for flow in out_of(table, Role.OPERATOR)} == {Role.WORKER_AT_SITE}
    named = flows(build({"control_plane": {**plane, "operators": ["10.250.0.0/24"]}, "pools": REGION}))
    assert {flow.destination for flow in out_of(named, Role.OPERATOR)} == {
        Role.LOAD_BALANCER,
        *ETCDS,
        Role.WORKER_AT_SITE,
    }


@given(SHAPES)
def test_the_internet_reaches_only_the_port_of_the_api_and_only_if_the_spec_says_so(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    opened = {(flow.source, flow.destination, flow.ports) for flow in table if Role.PUBLIC_BALANCER in _ends(flow)}
    assert {flow.destination for flow in out_of(table, Role.PUBLIC_OPERATOR)} <= {Role.PUBLIC_BALANCER}
    way = {
        (Role.PUBLIC_OPERATOR, Role.PUBLIC_BALANCER, (API_PORT,)),
        (Role.PUBLIC_BALANCER, Role.API_SERVER, (API_PORT,)),
    }
    assert opened == (way if cluster.spec.control_plane.public else set())


def _ends(flow):
    return flow.source, flow.destination


@given(SHAPES)
def test_no_role_reaches_or_is_reached_by_every_other(build, changes):
    table = flows(build(changes))
    all_roles = set(roles(table))
    for flow in table:
        assert bool(flow.ports) == (flow.protocol in (Protocol.TCP, Protocol.UDP))
        if flow.protocol is Protocol.ALL:
            assert flow.destination is Role.POD
            assert flow.source in {*WORKERS, Role.POD}
        assert all(0 < port < 65536 for port in flow.ports)
    for role in all_roles:
        assert {flow.destination for flow in out_of(table, role)} | {role} != all_roles
        assert {flow.source for flow in into(table, role)} | {role} != all_roles


@given(SHAPES)
def test_every_pair_with_an_end_in_the_cluster_is_either_in_the_table_or_closed(build, changes):
    table = flows(build(changes))
    used = {(flow.source, flow.destination) for flow in table}
    assert used.isdisjoint(closed(table))
    all_roles = roles(table)
    assert used | set(closed(table)) == {(a, b) for a in all_roles for b in all_roles if a in OWN or b in OWN}


@given(SHAPES)
def test_no_flow_is_in_the_table_twice(build, changes):
    table = flows(build(changes))
    rows = [(f.source, f.destination, f.protocol, port) for f in table for port in f.ports or (0,)]
    assert len(rows) == len(set(rows))
    assert {flow for role in Role for flow in into(table, role)} == set(table)
    assert {flow for role in Role for flow in out_of(table, role)} == set(table)


def test_only_roles_of_the_cluster_are_in_the_table(build):
    without = flows(build({"pools": {"workers": None}, "etcd": {"events": {"hosts": "main"}}}))
    assert OWN & set(roles(without)) == {Role.LOAD_BALANCER, Role.API_SERVER, Role.ETCD_MAIN}
    assert Role.REGISTRY not in roles(without)
    empty = flows(build({"pools": {"workers": None, "cpu": {"machine": "m", "max": 0}}}))
    assert not set(WORKERS) & set(roles(empty))
    assert set(roles(flows(build(EVERYONE)))) == set(Role)


@pytest.mark.parametrize("shared", [True, False])
def test_events_is_reached_on_the_hosts_of_its_members(build, shared):
    table = flows(build({"etcd": {"events": {"hosts": "main" if shared else "dedicated"}}}))
    main, events = (between(table, Role.API_SERVER, role) for role in ETCDS)
    assert (main, events) == (({2379, 2381}, set()) if shared else ({2379}, {2381}))


@pytest.mark.parametrize(
    ("flannel", "vxlan", "native"),
    [
        ({"backend": "vxlan", "direct_routing": True}, {8472}, True),
        ({"backend": "vxlan", "direct_routing": False}, {8472}, False),
        ({"backend": "host-gw"}, set(), True),
    ],
)
def test_packets_of_pods_follow_the_settings_of_flannel(build, flannel, vxlan, native):
    table = flows(build({"network": {"flannel": flannel}}))
    assert ports_into(table, Role.WORKER_AT_SITE, Protocol.UDP) - set(NODE_PORTS) == vxlan
    assert {flow.source for flow in into(table, Role.POD)} == ({Role.WORKER_AT_SITE, Role.POD} if native else set())


def test_workers_in_the_region_and_at_sites_are_one_network_of_pods(build):
    table = flows(build({"pools": REGION}))
    for source, destination in product(WORKERS, WORKERS):
        assert between(table, source, destination) == {8472, 9100, 10250, *NODE_PORTS}


@given(SHAPES)
def test_ports_of_services_are_open_to_the_cluster_and_to_ranges_in_the_spec(build, changes):
    cluster = build(changes)
    table, node_ports = flows(cluster), cluster.spec.network.node_ports
    workers = set(WORKERS) & set(roles(table))
    let_in = (workers if node_ports.cluster else set()) | ({Role.SERVICE_CLIENT} if node_ports.outside else set())
    opened = {(flow.source, flow.destination, flow.protocol) for flow in table if set(flow.ports) & set(NODE_PORTS)}
    assert opened == set(product(let_in, workers, (Protocol.TCP, Protocol.UDP)))


def test_ssh_is_open_on_the_ports_of_sites_with_workers(build):
    rack = {"r9": "10.9.0.0/24"}
    sites = {"onprem": {"ssh": {"port": 2222}}, "second": {"racks": rack}, "idle": {"racks": rack, "ssh": {"port": 99}}}
    table = flows(build({"sites": sites, "pools": {"gpu": {"site": "second", "hosts": "gpu.yaml"}}}))
    assert between(table, Role.OPERATOR, Role.WORKER_AT_SITE) == {22, 2222}


@given(SHAPES)
def test_a_joined_site_and_the_gateway_use_ipsec_and_bgp_only_with_each_other(build, changes):
    cluster = build(changes)
    table, ends = flows(cluster), {Role.SITE_EDGE, Role.VPN_GATEWAY}
    of_vpn = {flow for flow in table if {flow.source, flow.destination} & ends}
    if not cluster.spec.sites["onprem"].vpn:
        assert not of_vpn
        return
    assert {frozenset((flow.source, flow.destination)) for flow in of_vpn} == {frozenset(ends)}
    assert {flow.protocol for flow in into(table, Role.SITE_EDGE)} == {Protocol.UDP, Protocol.ESP}
    assert ports_into(table, Role.SITE_EDGE, Protocol.UDP) == {500, 4500}
    assert ports_into(table, Role.VPN_GATEWAY) == {179}


@pytest.mark.parametrize(
    ("mirror", "registry", "ports"),
    [
        (None, None, ({443}, {443})),
        ("https://mirror.example/a:1/b", "registry.example", ({443}, {443})),
        ("http://10.1.0.1", "10.1.0.1:5000", ({80}, {5000})),
        ("http://user:1@mirror.example:8081/a", "registry.example:443", ({8081}, {443})),
    ],
)
def test_a_mirror_and_a_registry_are_reached_on_their_ports(lab, mirror, registry, ports):
    table = flows(lab, ArtefactSource(mirror, {}, registry))
    assert (ports_into(table, Role.ARTEFACT_MIRROR), ports_into(table, Role.REGISTRY)) == ports


def test_only_hosts_that_boot_from_user_data_fetch_secrets_and_metadata(build):
    table = flows(build({"pools": REGION}))
    for service in (Role.SECRET_STORE, Role.METADATA):
        assert {flow.source for flow in into(table, service)} == set(CLOUD_SIDE)


@given(SHAPES)
def test_a_reason_is_a_sentence_that_every_firewall_accepts_as_a_comment(build, changes):
    # AWS allows the fewest characters (EC2, IpRange), nft the shortest comments (128 bytes).
    for flow in flows(build(changes)):
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,125}\.", flow.why)


def test_the_reference_of_flows_is_current(build):
    path = ROOT / "docs" / "reference" / "flows.md"
    text = reference(flows(build(EVERYONE)))
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text, "run `make golden`"


def test_workers_of_a_site_reach_its_mirrors_and_workers_in_the_region_the_common_registry(build):
    mirrors = [{"address": "one.example.org:5000"}, {"address": "two.example.org"}]
    source = ArtefactSource(None, {}, "registry.example.org:8443")

    def ports(**registries):
        cluster = build({"pools": REGION, "sites": {"onprem": {"registries": registries or None}}})
        return [sorted(between(flows(cluster, source), worker, Role.REGISTRY)) for worker in WORKERS]

    assert ports() == [[8443], [8443]]
    assert ports(mirrors=mirrors) == [[8443], [443, 5000]]
    assert ports(mirrors=mirrors[:1], upstream=True) == [[8443], [443, 5000]]
    assert ports(mirrors=mirrors, plain_http=True) == [[8443], [80, 5000]]


def test_a_site_without_mirrors_reaches_the_common_registry_next_to_a_site_with_mirrors(build):
    other = {"racks": {"r9": "10.79.9.0/24"}, "registries": {"mirrors": [{"address": "one.example.org:5000"}]}}
    table = flows(build({"sites": {"other": other}}), ArtefactSource(None, {}, "registry.example.org:8443"))
    assert between(table, Role.WORKER_AT_SITE, Role.REGISTRY) == {5000, 8443}
