"""The rules that the engine is asked for, against the table of flows."""

from __future__ import annotations

import re
from collections import Counter
from ipaddress import IPv4Network

import pytest

from cluster.artefacts import ArtefactSource
from cluster.sources import source_of
from flows.flow import Protocol, Role
from flows.table import flows
from stacks.aws.rules import ranges_of, rules
from tests.stacks.aws.tokens import EGRESS, GROUP, INGRESS

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)
SIDES = {"in": INGRESS, "out": EGRESS}
# AWS has the resolver, the time server and the metadata service at addresses that no group filters.
PAST_GROUPS = {Role.RESOLVER, Role.TIME_SERVER, Role.METADATA}
ELSEWHERE = {
    *(Role.OPERATOR, Role.WORKER_AT_SITE, Role.SITE_EDGE, Role.POD),
    *(Role.VPN_GATEWAY, Role.ARTEFACT_MIRROR, Role.REGISTRY),
}
WITHOUT_GROUP = {
    "small": {Role.OPERATOR: {"10.200.0.0/24"}},
    "whole": {Role.OPERATOR: {"192.0.2.0/24"}},
}
EVERYWHERE = {Role.ARTEFACT_MIRROR: {"0.0.0.0/0"}, Role.REGISTRY: {"0.0.0.0/0"}}
FABRIC = "interfaces of EFA"


def asked_for(made):
    """(group, side, peer, protocol, port) -> description, of every rule in the account; groups by their role."""
    groups = {record.id: record.inputs["description"].partition(": ")[2] for record in made.of_type(GROUP)}
    found = {}
    for side, token in SIDES.items():
        for record in made.of_type(token):
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
        protocol = "-1" if flow.protocol is Protocol.ALL else flow.protocol.value
        for address in {peer.value} if peer.value in groups else ranges.get(peer, ()):
            if own.value in groups:
                yield from ((own.value, side, address, protocol, port) for port in flow.ports or (None,))


@BOTH
def test_groups_let_through_what_the_table_says_and_nothing_else(made, request):
    groups, found = asked_for(made)
    ranges = {**EVERYWHERE, **WITHOUT_GROUP["small" if made.cluster.name == "small" else "whole"]}
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
def test_the_whole_internet_is_named_only_as_the_place_of_downloads(made):
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
    inside = ArtefactSource(mirror="http://10.40.200.5:8080", sha256={}, registry="10.40.200.6:5000")
    made = rules(flows(small.cluster, inside), ranges_of(small.cluster, inside))
    outward = {
        (str(rule.peer), rule.port) for rule in made if isinstance(rule.peer, IPv4Network) and rule.direction == "to"
    }
    assert outward == {("10.40.200.5/32", 8080), ("10.40.200.6/32", 5000)}


def test_nobody_from_outside_is_let_in_where_no_operators_are_named(small):
    plane = small.cluster.spec.control_plane.model_copy(update={"operators": ()})
    cluster = small.cluster.model_copy(update={"spec": small.cluster.spec.model_copy(update={"control_plane": plane})})
    source = source_of(cluster.spec)
    made = rules(flows(cluster, source), ranges_of(cluster, source))
    assert not [rule for rule in made if rule.direction == "from" and isinstance(rule.peer, IPv4Network)]


def test_rules_that_differ_have_names_that_differ(whole):
    source = source_of(whole.cluster.spec)
    made = rules(flows(whole.cluster, source), ranges_of(whole.cluster, source))
    assert len({rule.name for rule in made}) == len(made) > 35
