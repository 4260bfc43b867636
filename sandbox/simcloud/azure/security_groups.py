"""Network security groups."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.common import network_name, outputs, parts, under_group
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.refusals import networks
from sandbox.simcloud.rules import Call, Reason, ResourceType, Saying
from sandbox.simcloud.values import Properties

SECURITY_GROUP = "azure-native:network:NetworkSecurityGroup"

_NAME = re.compile(r"[a-zA-Z0-9]([\w.-]*\w)?")
_LOWEST, _HIGHEST = 100, 4096
_ONE_OR_MANY = (
    *(("sourceAddressPrefix", "sourceAddressPrefixes"), ("destinationAddressPrefix", "destinationAddressPrefixes")),
    *(("sourcePortRange", "sourcePortRanges"), ("destinationPortRange", "destinationPortRanges")),
)
_SOURCE_GROUPS, _DESTINATION_GROUPS = "sourceApplicationSecurityGroups", "destinationApplicationSecurityGroups"
_NOT_IN_LISTS = {"*", "VirtualNetwork", "Internet", "AzureLoadBalancer"}
_HIGHEST_PORT = 65535
# "Azure subscription and service limits": rules per group, and addresses and ranges in all of them, for each side separately.
_MOST_RULES, _MOST_ADDRESSES = 1000, 4000


def _priorities(call: Call) -> None:
    priorities: dict[tuple[str, int], str] = {}
    names: set[str] = set()
    for rule in call.inputs.get("securityRules") or ():
        name, priority, direction = str(rule.get("name")), rule.get("priority"), str(rule.get("direction"))
        if not _NAME.fullmatch(name) or len(name) > 80 or name.lower() in names:
            raise refused(
                "InvalidResourceName",
                f"Resource name {name} is invalid. The name can be up to 80 characters long.",
                "each rule needs a unique name of letters, digits, '.', '-' and '_'",
            )
        if not isinstance(priority, int) or not _LOWEST <= priority <= _HIGHEST:
            raise refused(
                "SecurityRuleInvalidPriority",
                f"Security rule has invalid Priority. Value provided: {priority} Allowed range {_LOWEST}-{_HIGHEST}.",
                f"rule {name}",
            )
        if (direction, priority) in priorities:
            raise refused(
                "SecurityRuleConflict",
                f"Security rule {name} conflicts with rule {priorities[direction, priority]}. Rules cannot have the same "
                "Priority and Direction.",
                f"both have {priority}, {direction}",
            )
        names.add(name.lower())
        priorities[direction, priority] = name


def _limits(call: Call) -> None:
    rules = list(call.inputs.get("securityRules") or ())
    if len(rules) > _MOST_RULES:
        raise refused(
            "MaxSecurityRulesLimitExceeded",
            f"Network security group has {len(rules)} security rules. The limit is {_MOST_RULES}.",
            "merge rules",
        )
    for one, many in _ONE_OR_MANY[:2]:
        number = sum(len(rule.get(many) or (1,) * bool(rule.get(one))) for rule in rules)
        if number > _MOST_ADDRESSES:
            raise refused(
                "MaxAddressPrefixesLimitExceeded",
                f"The rules have {number} address prefixes as {many}. The limit is {_MOST_ADDRESSES}.",
                "merge ranges: each rule counts its own",
            )


def _addresses_and_ports(call: Call) -> None:
    for rule in call.inputs.get("securityRules") or ():
        for one, many in _ONE_OR_MANY:
            _one_or_many(rule, one, many)
        for name in ("sourcePortRanges", "destinationPortRanges"):
            for text in [rule.get(name.removesuffix("s")), *(rule.get(name) or ())]:
                if text is not None and not _is_range(str(text)):
                    raise refused(
                        "SecurityRuleInvalidPortRange",
                        f"Security rule has invalid Port range. Value provided: {text}. Value should be an integer OR "
                        f"integer range with '-' delimiter. Valid range 0-{_HIGHEST_PORT}.",
                        f"rule {rule.get('name')}",
                    )


def _one_or_many(rule: Properties, one: str, many: str) -> None:
    groups = {"sourceAddressPrefix": _SOURCE_GROUPS, "destinationAddressPrefix": _DESTINATION_GROUPS}.get(one, "")
    given = [name for name in (one, many, groups) if rule.get(name)]
    if len(given) != 1:
        raise refused(
            BAD_REQUEST,
            f"Security rule {rule.get('name')} has {' and '.join(given) or f'neither {one} nor {many}'}.",
            f"set one of {one} and {many}",
        )
    unsupported = [text for text in rule.get(many) or () if text in _NOT_IN_LISTS]
    if unsupported:
        raise refused(
            "SecurityRuleParameterContainsUnsupportedValue",
            f"Security rule parameter {many} for rule {rule.get('name')} cannot specify existing VIRTUALNETWORK, "
            f"INTERNET, AZURELOADBALANCER, '*' or system tags. Unsupported value used: {unsupported[0]}.",
            f"use {one}",
        )


def _apart(call: Call) -> None:
    """Refuse a list of prefixes that overlap (alan-turing-institute/data-safe-haven, issue 2077)."""
    for rule in call.inputs.get("securityRules") or ():
        for many in ("sourceAddressPrefixes", "destinationAddressPrefixes"):
            ranges = list(networks(rule.get(many) or ()))
            for i, range_ in enumerate(ranges):
                if any(range_.overlaps(other) for other in ranges[:i]):
                    raise refused(
                        "OverlappingSubnetsNotPermittedInSecurityRule",
                        f"Security rule parameter {many} for rule {rule.get('name')} has overlapping subnets: {range_}.",
                        "leave out what another range contains",
                    )


def _is_range(text: str) -> bool:
    ends = text.split("-")
    if text == "*":
        return True
    if len(ends) > 2 or not all(end.isdigit() and int(end) <= _HIGHEST_PORT for end in ends):
        return False
    return int(ends[0]) <= int(ends[-1])


_security_group = ResourceType(
    token=SECURITY_GROUP,
    noun="NetworkSecurityGroup",
    identify=under_group("Microsoft.Network/networkSecurityGroups"),
    outputs=outputs("Microsoft.Network/networkSecurityGroups", securityRules=lambda call: parts(call, "securityRules")),
    naming=network_name("networkSecurityGroupName"),
    where=("location",),
    replace_on=("resourceGroupName", "networkSecurityGroupName"),
    recomputed=("etag",),
    references=(IN_GROUP,),
    refuse=(_priorities, _addresses_and_ports, _apart, _limits),
    says={
        Reason.IN_USE: Saying(
            'Status=400 Code="InUseNetworkSecurityGroupCannotBeDeleted" Message="Network security group {value} cannot '
            "be deleted because it is in use by the following resources: {user}. In order to delete the Network "
            'security group, remove the association with the resource(s)."',
            "remove it first from: {users}",
        )
    },
)

TYPES = (_security_group,)
