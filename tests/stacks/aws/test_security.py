"""The rules that the engine is asked for, against the table of flows."""

from __future__ import annotations

import re
from collections import Counter
from ipaddress import IPv4Network

import pytest

from cluster.artefacts import ArtefactSource
from flows.flow import Protocol, Role
from flows.table import UPSTREAM, flows
from stacks.aws.rules import ranges_of, rules

GROUP = "aws:ec2/securityGroup:SecurityGroup"
SIDES = {
    "in": "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "out": "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
}
# AWS has the resolver, the time server and the metadata service at addresses that no group filters.
PAST_GROUPS = {Role.RESOLVER, Role.TIME_SERVER, Role.METADATA}
ELSEWHERE = {
    *(Role.OPERATOR, Role.WORKER_AT_SITE, Role.SITE_EDGE),
    *(Role.VPN_GATEWAY, Role.ARTEFACT_MIRROR, Role.REGISTRY),
}
WITHOUT_GROUP = {
    "lemur": {Role.OPERATOR: {"192.0.2.0/24"}, Role.POD: {"100.64.0.0/10"}},
    "jackal": {
        Role.OPERATOR: {"192.0.2.0/24"},
        Role.POD: {"10.200.0.0/16"},
        Role.WORKER_AT_SITE: {"10.78.1.0/24", "10.78.2.0/24"},
    },
}
EVERYWHERE = {Role.ARTEFACT_MIRROR: {"0.0.0.0/0"}, Role.REGISTRY: {"0.0.0.0/0"}}


def asked_for(account):
    """(group, side, peer, protocol, port) -> description, of every rule in the account; groups by their role."""
    groups = {record.id: record.inputs["description"].partition(": ")[2] for record in account.world.of_type(GROUP)}
    found = {}
    for side, token in SIDES.items():
        for record in account.world.of_type(token):
            rule = record.inputs
            peer = rule.get("cidrIpv4") or groups[rule["referencedSecurityGroupId"]]
            assert rule.get("fromPort") == rule.get("toPort")
            key = (groups[rule["securityGroupId"]], side, peer, rule["ipProtocol"], rule.get("fromPort"))
            assert key not in found, "AWS refuses a rule that differs in its description alone"
            found[key] = rule["description"]
    return set(groups.values()), found


def needed(flow, groups, ranges):
    """The rules that one flow needs."""
    sides = (("in", flow.destination, flow.source), ("out", flow.source, flow.destination))
    for side, own, peer in sides:
        holder = Role.WORKER_IN_REGION if own is Role.POD else own
        protocol = "-1" if flow.protocol is Protocol.ALL else flow.protocol.value
        for address in {peer.value} if peer.value in groups else ranges.get(peer, ()):
            if holder.value in groups:
                yield from ((holder.value, side, address, protocol, port) for port in flow.ports or (None,))


@pytest.mark.parametrize("name", ["lemur", "jackal"])
def test_groups_let_through_what_the_table_says_and_nothing_else(networks, name):
    cluster, account = networks[name]
    groups, found = asked_for(account)
    whys = {}
    for flow in flows(cluster, UPSTREAM):
        ends = {flow.source, flow.destination}
        if not ends & PAST_GROUPS and ends != {Role.WORKER_AT_SITE, Role.POD}:
            wanted = list(needed(flow, groups, {**EVERYWHERE, **WITHOUT_GROUP[name]}))
            assert wanted or ends <= ELSEWHERE, flow
            for key in wanted:
                whys.setdefault(key, []).append(flow.why)
    assert set(found) == set(whys)
    for key, description in found.items():
        assert description == " ".join(dict.fromkeys(whys[key])), key


@pytest.mark.parametrize("name", ["lemur", "jackal"])
def test_the_whole_internet_is_named_only_as_the_place_of_downloads(networks, name):
    _, account = networks[name]
    _, found = asked_for(account)
    open_ = {(side, protocol, port) for _, side, peer, protocol, port in found if peer == "0.0.0.0/0"}
    assert open_ == {("out", "tcp", 443)}


@pytest.mark.parametrize("name", ["lemur", "jackal"])
def test_aws_takes_every_description_and_every_group_has_room_for_its_rules(networks, name):
    _, account = networks[name]
    _, found = asked_for(account)
    assert not [
        text for text in found.values() if not re.fullmatch(r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{1,255}", text)
    ]
    # 60 a group and direction, unless AWS is asked for more.
    assert max(Counter((group, side) for group, side, *_ in found).values()) <= 60


def test_a_mirror_and_a_registry_at_an_address_close_the_internet(lemur):
    inside = ArtefactSource(mirror="http://10.40.200.5:8080", sha256={}, registry="10.40.200.6:5000")
    made = rules(flows(lemur, inside), ranges_of(lemur, inside, ()))
    outward = {(str(rule.peer), rule.port) for rule in made if isinstance(rule.peer, IPv4Network) and rule.port}
    assert outward == {("10.40.200.5/32", 8080), ("10.40.200.6/32", 5000)}


def test_nobody_from_outside_is_let_in_where_no_operators_are_named(lemur):
    made = rules(flows(lemur, UPSTREAM), ranges_of(lemur, UPSTREAM, ()))
    assert {rule.peer for rule in made if rule.direction == "from" and isinstance(rule.peer, IPv4Network)} == {
        lemur.spec.network.pods
    }


def test_rules_that_differ_have_names_that_differ(jackal):
    made = rules(flows(jackal, UPSTREAM), ranges_of(jackal, UPSTREAM, (IPv4Network("192.0.2.0/24"),)))
    assert len({rule.name for rule in made}) == len(made) > 40
