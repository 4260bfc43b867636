"""The rules that the engine is asked for, against the table of flows."""

from __future__ import annotations

import re
from collections import Counter
from graphlib import CycleError
from ipaddress import IPv4Network

import pytest

from cluster.artefacts import ArtefactSource
from cluster.sources import source_of
from components.flows.flow import Flow, Protocol, Role
from components.flows.flow import ranges as port_ranges
from components.flows.table import flows
from stacks.aws.rules import groups, ranges_of, rules
from tests.stacks.aws.tokens import BALANCER, ENDPOINT, GROUP, SUBNET

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)
SIDES = ("in", "out")
# AWS has the resolver, the time server and the metadata service at addresses that no group filters.
PAST_GROUPS = {Role.RESOLVER, Role.TIME_SERVER, Role.METADATA}
ELSEWHERE = {
    *(Role.OPERATOR, Role.WORKER_AT_SITE, Role.SITE_EDGE, Role.POD),
    *(Role.VPN_GATEWAY, Role.ARTEFACT_MIRROR, Role.REGISTRY, Role.CLOUD_API, Role.BUCKETS),
}
WITHOUT_GROUP = {
    "small": {Role.OPERATOR: {"10.200.0.0/24"}},
    "whole": {
        Role.OPERATOR: {"192.0.2.0/24"},
        Role.PUBLIC_OPERATOR: {"203.0.113.0/24", "198.51.100.128/25"},
    },
}
EVERYWHERE = {key: {"0.0.0.0/0"} for key in (Role.ARTEFACT_MIRROR, Role.REGISTRY, Role.CLOUD_API, Role.BUCKETS)}
FABRIC = "interfaces of EFA"


def asked_for(made):
    """(group, side, peer, protocol, port) -> description, of every rule in the account; groups by their role."""
    groups = {record.id: record.inputs["description"].partition(": ")[2] for record in made.of_type(GROUP)}
    found = {}
    for record in made.of_type(GROUP):
        own = groups[record.id]
        for side, rules_ in (("in", record.inputs["ingress"]), ("out", record.inputs["egress"])):
            for rule in rules_:
                by_id = [groups[id_] for id_ in rule.get("securityGroups", ())]
                (peer,) = (*rule.get("cidrBlocks", ()), *by_id, *([own] if rule.get("self") else ()))
                ends = (rule["fromPort"], rule["toPort"])
                key = (own, side, peer, rule["protocol"], one_port(ends if any(ends) else None))
                assert key not in found, "AWS refuses a rule that differs in its description alone"
                found[key] = rule["description"]
    return set(groups.values()), found


def one_port(ports):
    """A range of one port is the port."""
    return ports[0] if ports and ports[0] == ports[1] else ports


def where(made):
    """Where each role with a group has its addresses, from the plan and the subnets that the engine was asked for."""
    subnets = {}
    for record in made.of_type(SUBNET):
        subnets.setdefault(record.inputs["tags"]["role"], set()).add(record.inputs["cidrBlock"])
    (balancer,) = (record for record in made.of_type(BALANCER) if record.inputs["internal"])
    (store,) = (record for record in made.of_type(ENDPOINT) if record.inputs["vpcEndpointType"] == "Interface")
    return {
        Role.API_SERVER: subnets["api-servers"],
        Role.WORKER_IN_REGION: subnets["workers"],
        Role.FILE_STORE: subnets["workers"],
        Role.ETCD_MAIN: {f"{host.address}/32" for host in made.plan.etcd["main"]},
        Role.ETCD_EVENTS: {f"{host.address}/32" for host in made.plan.etcd["events"]},
        Role.LOAD_BALANCER: {f"{one['privateIpv4Address']}/32" for one in balancer.inputs["subnetMappings"]},
        Role.SECRET_STORE: {f"{one['ipv4']}/32" for one in store.inputs["subnetConfigurations"]},
    }


def needed(flow, groups, ranges):
    """The rules that one flow needs: in by group, so that nobody is let in for standing in a subnet, out by range."""
    sides = (("in", flow.destination, flow.source), ("out", flow.source, flow.destination))
    for side, own, peer in sides:
        protocol = "-1" if flow.protocol is Protocol.ALL else flow.protocol.value
        by_group = peer.value in groups and (side == "in" or own is peer)
        for address in {peer.value} if by_group else ranges.get(peer, ()):
            if own.value in groups:
                yield from (
                    (own.value, side, address, protocol, port)
                    for port in map(one_port, port_ranges(flow.ports) or (None,))
                )


@BOTH
def test_groups_let_through_what_the_table_says_and_nothing_else(made, request):
    groups, found = asked_for(made)
    ranges = {**where(made), **EVERYWHERE, **WITHOUT_GROUP["small" if made.cluster.name == "small" else "whole"]}
    whys = {}
    for flow in flows(made.cluster, source_of(made.cluster.spec)):
        ends = {flow.source, flow.destination}
        if not ends & PAST_GROUPS:
            wanted = list(needed(flow, groups, ranges))
            assert wanted or ends <= ELSEWHERE, flow
            for key in wanted:
                whys.setdefault(key, []).append(flow.why)
    fabric = {key for key in found if key[0] == FABRIC}
    assert set(found) - fabric == set(whys)
    for key, sentences in whys.items():
        assert found[key] == " ".join(dict.fromkeys(sentences)), key


def test_interfaces_of_efa_reach_each_other_entirely_and_nobody_else(small, whole):
    _, found = asked_for(whole)
    assert {key for key in found if FABRIC in key} == {(FABRIC, side, FABRIC, "-1", None) for side in SIDES}
    assert FABRIC not in asked_for(small)[0]


@BOTH
def test_the_whole_internet_is_named_only_as_the_place_of_downloads_and_of_the_cloud_s_own_api(made):
    _, found = asked_for(made)
    open_ = {(side, protocol, port) for _, side, peer, protocol, port in found if peer == "0.0.0.0/0"}
    assert open_ == {("out", "tcp", 443)}


@BOTH
def test_aws_takes_every_description_and_every_group_has_room_for_its_rules(made):
    _, found = asked_for(made)
    assert not [
        text for text in found.values() if not re.fullmatch(r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{1,255}", text)
    ]
    # 60 a group and direction, unless AWS is asked for more.
    assert max(Counter((group, side) for group, side, *_ in found).values()) <= 60


def test_a_mirror_and_a_registry_at_an_address_close_the_internet(small):
    own = small.cluster.spec.network.nodes
    inside = ArtefactSource(mirror="http://10.40.200.5:8080", sha256={}, registry="10.40.200.6:5000")
    made = rules(flows(small.cluster, inside), ranges_of(small.cluster, small.plan, inside))
    outward = {
        (str(rule.peer), one_port(rule.ports))
        for rule in made
        if rule.direction == "to" and isinstance(rule.peer, IPv4Network) and not rule.peer.subnet_of(own)
    }
    # EC2 is asked by the controllers of volumes, S3 by those who make backups or keep audit logs.
    told = {(str(rule.peer), one_port(rule.ports), rule.group) for rule in made if str(rule.peer) == "0.0.0.0/0"}
    assert told == {("0.0.0.0/0", 443, role) for role in (Role.WORKER_IN_REGION, Role.ETCD_MAIN, Role.API_SERVER)}
    assert outward - {("0.0.0.0/0", 443)} == {("10.40.200.5/32", 8080), ("10.40.200.6/32", 5000)}


def test_nobody_from_outside_is_let_in_where_no_operators_are_named(small):
    plane = small.cluster.spec.control_plane.model_copy(update={"operators": ()})
    cluster = small.cluster.model_copy(update={"spec": small.cluster.spec.model_copy(update={"control_plane": plane})})
    source = source_of(cluster.spec)
    made = rules(flows(cluster, source), ranges_of(cluster, small.plan, source))
    assert not [rule for rule in made if rule.direction == "from" and isinstance(rule.peer, IPv4Network)]


def test_a_group_is_made_after_those_that_it_lets_in(whole):
    table = flows(whole.cluster)
    made = groups(table)
    assert len(made) == len(set(made)) == 8
    for flow in table:
        if flow.source in made and flow.destination in made:
            assert made.index(flow.source) <= made.index(flow.destination), flow


def test_roles_that_let_each_other_in_are_refused_and_not_left_half_open():
    there = Flow(Role.API_SERVER, Role.ETCD_MAIN, Protocol.TCP, (1,), "There.")
    back = Flow(Role.ETCD_MAIN, Role.API_SERVER, Protocol.TCP, (2,), "And back.")
    assert groups((there,)) == (Role.API_SERVER, Role.ETCD_MAIN)
    with pytest.raises(CycleError):
        groups((there, back))
