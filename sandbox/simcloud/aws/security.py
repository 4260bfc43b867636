"""Security groups of AWS, and their rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_network

from sandbox.simcloud.aws.common import ec2, made_up, named, others, refused, vpc_of
from sandbox.simcloud.aws.network import IN_VPC
from sandbox.simcloud.aws.tokens import SECURITY_GROUP, VPC
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Rule, Saying
from sandbox.simcloud.values import at
from sandbox.simcloud.world import Record

# "Amazon VPC quotas": rules of a group in each direction, and groups of a network interface.
_RULES, _GROUPS = 60, 5
# Where a group states its rules itself: where it says whom they let through.
_STATED = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds", "securityGroups")
_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_PORTED = {"tcp": "TCP", "udp": "UDP", "6": "TCP", "17": "UDP"}
_MEANING = ("securityGroupId", "ipProtocol", "fromPort", "toPort", *_PEERS)


def beside_subnets(paths: tuple[str, ...], subnets: Callable[[Call], list[Record]]) -> Rule:
    """A rule: the groups at `paths` are no more than an interface takes, and of the VPC of the subnets."""

    def rule(call: Call) -> None:
        groups = named(call, *paths)
        if len(groups) > _GROUPS:
            raise refused(
                "SecurityGroupsPerInterfaceLimitExceeded",
                "The maximum number of security groups per interface has been reached.",
                f"an interface has at most {_GROUPS}, this one {len(groups)}",
            )
        for subnet in subnets(call):
            apart_from(groups, subnet)

    return rule


def apart_from(groups: list[Record], subnet: Record) -> None:
    """Refuses groups of another VPC than the subnet's."""
    for group in groups:
        if vpc_of(group) != vpc_of(subnet):
            raise refused(
                "InvalidParameter",
                f"Security group {group.id} and subnet {subnet.id} belong to different networks.",
                f"the group must be one of {vpc_of(subnet)}",
            )


def _one_peer(call: Call) -> None:
    given = [name for name in _PEERS if call.inputs.get(name)]
    if len(given) != 1:
        raise refused(
            "",
            f"Exactly one of these attributes must be configured: [{','.join(_PEERS)}]",
            f"this rule has {', '.join(given) or 'none'}",
        )
    text = call.text("cidrIpv4")
    if text and str(ip_network(text, strict=False)) != text:
        raise refused(
            "",
            f"Invalid CIDR block: cidrIpv4 {text} has bits of a host",
            f"write {ip_network(text, strict=False)}",
            "cidrIpv4",
        )


def _ports(call: Call) -> None:
    _port_range(call.text("ipProtocol"), call.inputs.get("fromPort"), call.inputs.get("toPort"))


def _port_range(said: str, low: float | None, high: float | None) -> None:
    protocol = _PORTED.get(said.lower())
    if protocol is None:
        return
    if low is None or high is None:
        raise refused(
            "InvalidParameterValue",
            "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.",
            "set fromPort and toPort",
        )
    if not 0 <= low <= high <= 65535:
        raise refused(
            "InvalidParameterValue",
            f"Invalid {protocol} port range ({low:.0f},{high:.0f})",
            "ports rise from fromPort to toPort, between 0 and 65535",
        )


def _meaning(record: Record | Call) -> tuple[object, ...]:
    return tuple(record.inputs.get(name) for name in _MEANING)


def _once(call: Call) -> None:
    beside = [other for other in others(call) if other.inputs.get("securityGroupId") == call.text("securityGroupId")]
    for other in beside:
        if _meaning(other) == _meaning(call):
            raise refused(
                "InvalidPermission.Duplicate", f"the specified rule {_peer(call)} already exists", _way(other)
            )
    if len(beside) >= _RULES:
        raise refused(
            "RulesPerSecurityGroupLimitExceeded",
            "The maximum number of rules per security group has been reached.",
            f"{call.text('securityGroupId')} has {len(beside)} in this direction; merge ranges or ask for a higher quota",
        )


def _stated_rules(call: Call) -> None:
    """Rules that a group states itself: each once, with ports and a peer, and no more than a group has."""
    for side in ("ingress", "egress"):
        seen: set[tuple[object, ...]] = set()
        for rule in at(call.inputs, f"{side}[]"):
            said, low, high = str(rule.get("protocol")), rule.get("fromPort"), rule.get("toPort")
            if said == "-1" and (low or high):
                raise refused(
                    "", f"from_port ({low}) and to_port ({high}) must both be 0 with protocol -1", "set both to 0"
                )
            _port_range(said, low, high)
            peers = [str(peer) for name in _STATED for peer in rule.get(name) or ()]
            peers += ["self"] if rule.get("self") else []
            for peer in peers:
                _stated_once(seen, (said, low, high, peer))
            if not peers:
                raise refused(
                    "InvalidParameterValue", f"{side}: a rule names nobody", f"give it one of {', '.join(_STATED)}"
                )
        if len(seen) > _RULES:
            raise refused(
                "RulesPerSecurityGroupLimitExceeded",
                "The maximum number of rules per security group has been reached.",
                f"{side} has {len(seen)}, each peer of a rule counts; merge ranges or ask for a higher quota",
            )


def _stated_once(seen: set[tuple[object, ...]], rule: tuple[object, ...]) -> None:
    if rule in seen:
        raise refused(
            "InvalidParameterValue",
            "The same permission must not appear multiple times",
            f"protocol, ports and peer {rule} are there twice; two rules of a group must differ in more than their "
            "description",
        )
    seen.add(rule)


def _stated_peers_in_reach(call: Call) -> None:
    own = call.target("vpcId")
    for peer in named(call, "ingress[].securityGroups[]", "egress[].securityGroups[]"):
        if own and vpc_of(peer) != own.id:
            raise refused(
                "InvalidGroup.NotFound",
                "You have specified two resources that belong to different networks.",
                f"{peer.id} must be a group of {own.id}, or of a VPC that it is peered with",
            )


def _peer(call: Call) -> str:
    peer = next(str(call.inputs[name]) for name in _PEERS if call.inputs.get(name))
    protocol = _PORTED.get(call.text("ipProtocol").lower(), "ALL")
    ports = "" if protocol == "ALL" else f", from port: {call.text('fromPort')}, to port: {call.text('toPort')}"
    return f'"peer: {peer}, {protocol}{ports}, ALLOW"'


def _way(other: Record) -> str:
    return f"{other} says the same; two rules of a group must differ in more than their description"


def _peer_in_reach(call: Call) -> None:
    own, peer = call.target("securityGroupId"), call.target("referencedSecurityGroupId")
    if own and peer and vpc_of(own) != vpc_of(peer):
        raise refused(
            "InvalidGroup.NotFound",
            "You have specified two resources that belong to different networks.",
            f"{peer.id} must be a group of {vpc_of(own)}, or of a VPC that it is peered with",
        )


_security_group = ResourceType(
    token=SECURITY_GROUP,
    noun="security group",
    code="InvalidGroup",
    identify=made_up("sg"),
    outputs=ec2("security-group"),
    where=("region",),
    naming=Naming(
        "name",
        # A name that begins with sg- is taken for an id.
        re.compile(r"(?!sg-)[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]+"),
        255,
        "it may not begin with sg-, nor have other than a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*",
        within=("vpcId",),
    ),
    replace_on=("name", "namePrefix", "description", "vpcId"),
    references=(
        IN_VPC,
        Reference("ingress[].securityGroups[]", (SECURITY_GROUP,)),
        Reference("egress[].securityGroups[]", (SECURITY_GROUP,)),
    ),
    refuse=(_stated_rules, _stated_peers_in_reach),
    says={
        Reason.TAKEN: Saying(
            "api error InvalidGroup.Duplicate: The security group '{name}' already exists for VPC '{parent}'",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error InvalidGroup.NotFound: The security group '{value}' does not exist",
            "{path} must name something that exists in {region}",
        ),
        Reason.IN_USE: Saying(
            "api error DependencyViolation: resource {value} has a dependent object",
            "delete first: {users}",
        ),
    },
)


def _default_of(call: Call) -> str:
    vpc = call.target("vpcId") or call.world.get(VPC, call.text("vpcId"))
    return str(vpc.outputs["defaultSecurityGroupId"]) if vpc else made_up("sg")(call)


_default_group = ResourceType(
    token="aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    noun="security group",
    code="InvalidGroup",
    identify=_default_of,
    outputs=ec2("security-group", name=lambda _: "default", description=lambda _: "default VPC security group"),
    where=("region",),
    replace_on=("vpcId",),
    # The provider adopts what came with the VPC, and lets it go without deleting it.
    references=(Reference("vpcId", (VPC,), holds=False),),
    upserts=True,
)

_ingress_rule = ResourceType(
    token="aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    noun="security group rule",
    code="InvalidSecurityGroupRuleId",
    identify=made_up("sgr"),
    outputs=ec2("security-group-rule", securityGroupRuleId=lambda call: call.id),
    where=("region",),
    replace_on=("securityGroupId",),
    # AWS changes whom a rule lets in, but not from a range to a group or back.
    replace_if=dict.fromkeys(_PEERS, lambda _, new: new is None),
    references=(
        # Rules go with their group; a rule holds the group that it lets in.
        Reference("securityGroupId", (SECURITY_GROUP,), holds=False),
        Reference("referencedSecurityGroupId", (SECURITY_GROUP,)),
    ),
    refuse=(_one_peer, _ports, _peer_in_reach, _once),
)

_egress_rule = replace(_ingress_rule, token="aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule")

TYPES = (_security_group, _default_group, _ingress_rule, _egress_rule)
