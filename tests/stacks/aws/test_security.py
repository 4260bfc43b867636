"""The rules that the engine is given, compared with the table of flows."""

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

BOTH = pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
SIDES = ("in", "out")
# AWS has the resolver, the time server and the metadata service at addresses that groups do not filter.
PAST_GROUPS = {Role.RESOLVER, Role.TIME_SERVER, Role.METADATA}
ELSEWHERE = {
    *(Role.OPERATOR, Role.WORKER_AT_SITE, Role.SITE_EDGE, Role.POD),
    *(Role.VPN_GATEWAY, Role.ARTEFACT_MIRROR, Role.REGISTRY, Role.CLOUD_API, Role.BUCKETS),
}
WITHOUT_GROUP = {
    "small": {Role.OPERATOR: {"10.200.0.0/24"}},
    "whole": {
        Role.OPERATOR: {"192.0.2.0/24"},
        Role.PUBLIC_OPERATOR: {
            "203.0.113.0/24",
            "198.51.100.128/25",
            *(f"198.51.100.{number}/32" for number in range(0, 118, 2)),
        },
    },
}
EVERYWHERE = {key: {"0.0.0.0/0"} for key in (Role.ARTEFACT_MIRROR, Role.REGISTRY, Role.CLOUD_API, Role.BUCKETS)}
FABRIC = "interfaces of EFA"


def declared_rules(deployed):
    """Return (group, side, peer, protocol, port) -> description, for every rule in the account; groups by their role."""
    groups = {record.id: record.inputs["description"].partition(": ")[2] for record in deployed.of_type(GROUP)}
    rules_by_key = {}
    for record in deployed.of_type(GROUP):
        own = groups[record.id]
        for side, rules_ in (("in", record.inputs["ingress"]), ("out", record.inputs["egress"])):
            for rule in rules_:
                by_id = [groups[id_] for id_ in rule.get("securityGroups", ())]
                (peer,) = (*rule.get("cidrBlocks", ()), *by_id, *([own] if rule.get("self") else ()))
                ends = (rule["fromPort"], rule["toPort"])
                key = (own, side, peer, rule["protocol"], one_port(ends if any(ends) else None))
                assert key not in rules_by_key, "AWS refuses a rule that differs only in its description"
                rules_by_key[key] = rule["description"]
    return set(groups.values()), rules_by_key


def one_port(ports):
    """Return the port for a range of one port."""
    return ports[0] if ports and ports[0] == ports[1] else ports


def addresses_by_role(deployed):
    """Return the addresses of each role with a group, from the plan and the declared subnets."""
    subnets = {}
    for record in deployed.of_type(SUBNET):
        subnets.setdefault(record.inputs["tags"]["role"], set()).add(record.inputs["cidrBlock"])
    (balancer,) = (record for record in deployed.of_type(BALANCER) if record.inputs["internal"])
    (store,) = (record for record in deployed.of_type(ENDPOINT) if record.inputs["vpcEndpointType"] == "Interface")
    return {
        Role.API_SERVER: subnets["api-servers"],
        Role.WORKER_IN_REGION: subnets["workers"],
        Role.FILE_STORE: subnets["workers"],
        Role.ETCD_MAIN: {f"{host.address}/32" for host in deployed.plan.etcd["main"]},
        Role.ETCD_EVENTS: {f"{host.address}/32" for host in deployed.plan.etcd["events"]},
        Role.LOAD_BALANCER: {f"{mapping['privateIpv4Address']}/32" for mapping in balancer.inputs["subnetMappings"]},
        Role.SECRET_STORE: {f"{mapping['ipv4']}/32" for mapping in store.inputs["subnetConfigurations"]},
    }


def needed(flow, groups, ranges):
    """Yield the rules that one flow needs: ingress by group, so that being in a subnet is not enough; egress by range."""
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
def test_groups_admit_exactly_what_the_table_says(deployed, request):
    groups, declared = declared_rules(deployed)
    ranges = {
        **addresses_by_role(deployed),
        **EVERYWHERE,
        **WITHOUT_GROUP["small" if deployed.cluster.name == "small" else "whole"],
    }
    whys = {}
    for flow in flows(deployed.cluster, source_of(deployed.cluster.spec)):
        ends = {flow.source, flow.destination}
        if not ends & PAST_GROUPS:
            expected = list(needed(flow, groups, ranges))
            assert expected or ends <= ELSEWHERE, flow
            for key in expected:
                whys.setdefault(key, []).append(flow.why)
    fabric = {key for key in declared if key[0] == FABRIC}
    assert set(declared) - fabric == set(whys)
    for key, sentences in whys.items():
        assert declared[key] == " ".join(dict.fromkeys(sentences)), key


def test_an_account_with_a_raised_quota_takes_more_rules_than_the_default(whole):
    quota = whole.cluster.spec.control_plane.security_group_rules
    (group,) = (item for item in whole.of_type(GROUP) if item.inputs["description"].endswith(": public load balancer"))
    assert len(group.inputs["ingress"]) == quota == 61


def test_interfaces_of_efa_exchange_any_traffic_among_themselves_only(small, whole):
    _, declared = declared_rules(whole)
    assert {key for key in declared if FABRIC in key} == {(FABRIC, side, FABRIC, "-1", None) for side in SIDES}
    assert FABRIC not in declared_rules(small)[0]


@BOTH
def test_the_whole_internet_is_open_only_for_downloads_and_the_clouds_api(deployed):
    _, declared = declared_rules(deployed)
    open_ = {(side, protocol, port) for _, side, peer, protocol, port in declared if peer == "0.0.0.0/0"}
    assert open_ == {("out", "tcp", 443)}


@BOTH
def test_descriptions_and_numbers_of_rules_are_within_the_limits_of_aws(deployed):
    _, declared = declared_rules(deployed)
    assert not [
        text for text in declared.values() if not re.fullmatch(r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{1,255}", text)
    ]
    quota = deployed.cluster.spec.control_plane.security_group_rules
    assert max(Counter((group, side) for group, side, *_ in declared).values()) <= quota


def test_a_mirror_and_a_registry_at_an_address_close_the_internet(small):
    own = small.cluster.spec.network.nodes
    inside = ArtefactSource(mirror="http://10.40.200.5:8080", sha256={}, registry="10.40.200.6:5000")
    rules_ = rules(flows(small.cluster, inside), ranges_of(small.cluster, small.plan, inside))
    outward = {
        (str(rule.peer), one_port(rule.ports))
        for rule in rules_
        if rule.direction == "to" and isinstance(rule.peer, IPv4Network) and not rule.peer.subnet_of(own)
    }
    # The volume controllers use EC2; hosts that make backups or keep audit logs use S3.
    anywhere = {(str(rule.peer), one_port(rule.ports), rule.group) for rule in rules_ if str(rule.peer) == "0.0.0.0/0"}
    assert anywhere == {("0.0.0.0/0", 443, role) for role in (Role.WORKER_IN_REGION, Role.ETCD_MAIN, Role.API_SERVER)}
    assert outward - {("0.0.0.0/0", 443)} == {("10.40.200.5/32", 8080), ("10.40.200.6/32", 5000)}


def test_no_outside_address_is_admitted_without_operators(small):
    plane = small.cluster.spec.control_plane.model_copy(update={"operators": ()})
    cluster = small.cluster.model_copy(update={"spec": small.cluster.spec.model_copy(update={"control_plane": plane})})
    source = source_of(cluster.spec)
    rules_ = rules(flows(cluster, source), ranges_of(cluster, small.plan, source))
    assert not [rule for rule in rules_ if rule.direction == "from" and isinstance(rule.peer, IPv4Network)]


def test_a_group_is_created_after_those_that_it_admits(whole):
    table = flows(whole.cluster)
    rules_ = groups(table)
    assert len(rules_) == len(set(rules_)) == 8
    for flow in table:
        if flow.source in rules_ and flow.destination in rules_:
            assert rules_.index(flow.source) <= rules_.index(flow.destination), flow


def test_roles_that_admit_each_other_are_refused():
    there = Flow(Role.API_SERVER, Role.ETCD_MAIN, Protocol.TCP, (1,), "There.")
    back = Flow(Role.ETCD_MAIN, Role.API_SERVER, Protocol.TCP, (2,), "And back.")
    assert groups((there,)) == (Role.API_SERVER, Role.ETCD_MAIN)
    with pytest.raises(CycleError):
        groups((there, back))
