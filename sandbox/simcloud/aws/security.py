"""Security groups of AWS, and their rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_network

from sandbox.simcloud.aws.common import ec2, generated_id, named, others, refused, vpc_of
from sandbox.simcloud.aws.network import IN_VPC
from sandbox.simcloud.aws.tokens import SECURITY_GROUP, VPC
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Rule, Saying
from sandbox.simcloud.values import at
from sandbox.simcloud.world import SECURITY_GROUP_RULES, Record

# "Amazon VPC quotas": rules per group and direction, which AWS raises on request, and groups per network interface.
_RULES, _GROUPS = 60, 5
# Properties that name the peers in rules inside a group's own declaration.
_INLINE_PEERS = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds", "securityGroups")
_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_PORTED = {"tcp": "TCP", "udp": "UDP", "6": "TCP", "17": "UDP"}
_MEANING = ("securityGroupId", "ipProtocol", "fromPort", "toPort", *_PEERS)


def groups_match_subnets(paths: tuple[str, ...], subnets: Callable[[Call], list[Record]]) -> Rule:
    """Return a rule: the groups at `paths` are within an interface's limit, and belong to the subnets' VPC."""

    def rule(call: Call) -> None:
        groups = named(call, *paths)
        if len(groups) > _GROUPS:
            raise refused(
                "SecurityGroupsPerInterfaceLimitExceeded",
                "The maximum number of security groups per interface has been reached.",
                f"an interface has at most {_GROUPS}, this one has {len(groups)}",
            )
        for subnet in subnets(call):
            check_same_vpc(groups, subnet)

    return rule


def check_same_vpc(groups: list[Record], subnet: Record) -> None:
    """Refuse groups of a VPC other than the subnet's."""
    for group in groups:
        if vpc_of(group) != vpc_of(subnet):
            raise refused(
                "InvalidParameter",
                f"Security group {group.id} and subnet {subnet.id} belong to different networks.",
                f"the group must belong to {vpc_of(subnet)}",
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


def _port_range(protocol: str, low: float | None, high: float | None) -> None:
    protocol_name = _PORTED.get(protocol.lower())
    if protocol_name is None:
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
            f"Invalid {protocol_name} port range ({low:.0f},{high:.0f})",
            "fromPort must not be above toPort, both between 0 and 65535",
        )


def _most_rules(call: Call) -> int:
    return call.world.quotas.get(SECURITY_GROUP_RULES, _RULES)


def _meaning(record: Record | Call) -> tuple[object, ...]:
    return tuple(record.inputs.get(name) for name in _MEANING)


def _once(call: Call) -> None:
    siblings = [other for other in others(call) if other.inputs.get("securityGroupId") == call.text("securityGroupId")]
    for other in siblings:
        if _meaning(other) == _meaning(call):
            raise refused(
                "InvalidPermission.Duplicate", f"the specified rule {_peer(call)} already exists", _duplicate(other)
            )
    if len(siblings) >= _most_rules(call):
        raise refused(
            "RulesPerSecurityGroupLimitExceeded",
            "The maximum number of rules per security group has been reached.",
            f"{call.text('securityGroupId')} has {len(siblings)} in this direction; merge ranges or request a higher quota",
        )


def _inline_rules(call: Call) -> None:
    """Check the rules in a group's own declaration: each once, with ports and a peer, and within the limit."""
    for side in ("ingress", "egress"):
        permissions: set[tuple[object, ...]] = set()
        for rule in at(call.inputs, f"{side}[]"):
            protocol, low, high = str(rule.get("protocol")), rule.get("fromPort"), rule.get("toPort")
            if protocol == "-1" and (low or high):
                raise refused(
                    "", f"from_port ({low}) and to_port ({high}) must both be 0 with protocol -1", "set both to 0"
                )
            _port_range(protocol, low, high)
            peers = [str(peer) for name in _INLINE_PEERS for peer in rule.get(name) or ()]
            peers += ["self"] if rule.get("self") else []
            for peer in peers:
                _inline_once(permissions, (protocol, low, high, peer))
            if not peers:
                raise refused(
                    "InvalidParameterValue",
                    f"{side}: a rule names nobody",
                    f"give it one of {', '.join(_INLINE_PEERS)}",
                )
        if len(permissions) > _most_rules(call):
            raise refused(
                "RulesPerSecurityGroupLimitExceeded",
                "The maximum number of rules per security group has been reached.",
                f"{side} has {len(permissions)}, and each peer of a rule counts; merge ranges or request a higher quota",
            )


def _inline_once(permissions: set[tuple[object, ...]], rule: tuple[object, ...]) -> None:
    if rule in permissions:
        raise refused(
            "InvalidParameterValue",
            "The same permission must not appear multiple times",
            f"protocol, ports and peer {rule} occur twice; two rules of a group must differ in more than their "
            "description",
        )
    permissions.add(rule)


def _inline_peers_in_reach(call: Call) -> None:
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


def _duplicate(other: Record) -> str:
    return f"{other} has the same content; two rules of a group must differ in more than their description"


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
    identify=generated_id("sg"),
    outputs=ec2("security-group"),
    where=("region",),
    naming=Naming(
        "name",
        # AWS takes a name that starts with sg- for an ID.
        re.compile(r"(?!sg-)[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]+"),
        255,
        "it must not start with sg-, and may have only a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*",
        within=("vpcId",),
    ),
    replace_on=("name", "namePrefix", "description", "vpcId"),
    references=(
        IN_VPC,
        Reference("ingress[].securityGroups[]", (SECURITY_GROUP,)),
        Reference("egress[].securityGroups[]", (SECURITY_GROUP,)),
    ),
    refuse=(_inline_rules, _inline_peers_in_reach),
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
    return str(vpc.outputs["defaultSecurityGroupId"]) if vpc else generated_id("sg")(call)


_default_group = ResourceType(
    token="aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    noun="security group",
    code="InvalidGroup",
    identify=_default_of,
    outputs=ec2("security-group", name=lambda _: "default", description=lambda _: "default VPC security group"),
    where=("region",),
    replace_on=("vpcId",),
    # The provider adopts the group that came with the VPC, and releases it without deleting it.
    references=(Reference("vpcId", (VPC,), holds=False),),
    upserts=True,
)

_ingress_rule = ResourceType(
    token="aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    noun="security group rule",
    code="InvalidSecurityGroupRuleId",
    identify=generated_id("sgr"),
    outputs=ec2("security-group-rule", securityGroupRuleId=lambda call: call.id),
    where=("region",),
    replace_on=("securityGroupId",),
    # AWS can change a rule's peer, but not from a range to a group or back.
    replace_if=dict.fromkeys(_PEERS, lambda _, new: new is None),
    references=(
        # Rules are deleted with their group; a rule keeps its peer group from being deleted.
        Reference("securityGroupId", (SECURITY_GROUP,), holds=False),
        Reference("referencedSecurityGroupId", (SECURITY_GROUP,)),
    ),
    refuse=(_one_peer, _ports, _peer_in_reach, _once),
)

_egress_rule = replace(_ingress_rule, token="aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule")

TYPES = (_security_group, _default_group, _ingress_rule, _egress_rule)
