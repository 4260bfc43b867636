"""The network security group, generated only from the table of flows."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_azure_native as azure

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from components.flows.flow import Protocol, spans
from components.flows.table import flows
from network.addresses import AddressPlan
from stacks.azure.rules import ANYWHERE, FIRST, LAST, Direction, Rule, rules
from stacks.azure.tags import tags

_PROTOCOLS = {Protocol.TCP: "Tcp", Protocol.UDP: "Udp", Protocol.ESP: "Esp", Protocol.ALL: "*"}


class Security(pulumi.ComponentResource):
    """One group for all subnets: each rule names both ends, so it has no effect in other subnets. Rules change together or
    not at all."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        group: pulumi.Input[str],
        source: ArtefactSource,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Security", "security", None, opts)
        self.group = azure.network.NetworkSecurityGroup(
            "network",
            resource_group_name=group,
            security_rules=_numbered(rules(cluster, plan, source, flows(cluster, source))),
            tags=tags(cluster, "network"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _numbered(allowed: Iterable[Rule]) -> list[azure.network.SecurityRuleArgs]:
    """Number the rules. In both directions, deny what no rule of ours admits, before Azure's own rules permit it."""
    numbers = dict.fromkeys(Direction, FIRST)
    numbered = []
    for rule in allowed:
        numbered.append(_allowed(rule, numbers[rule.direction]))
        numbers[rule.direction] += 1
    return numbered + [_refused(direction) for direction in Direction]


def _allowed(rule: Rule, priority: int) -> azure.network.SecurityRuleArgs:
    one_source, one_destination = len(rule.sources) == 1, len(rule.destinations) == 1
    return azure.network.SecurityRuleArgs(
        name=f"{rule.direction.lower()}-{rule.name}",
        description=rule.why,
        priority=priority,
        direction=rule.direction.value,
        access="Allow",
        protocol=_PROTOCOLS[rule.protocol],
        source_port_range=ANYWHERE,
        source_address_prefix=rule.sources[0] if one_source else None,
        source_address_prefixes=None if one_source else list(rule.sources),
        destination_address_prefix=rule.destinations[0] if one_destination else None,
        destination_address_prefixes=None if one_destination else list(rule.destinations),
        destination_port_range=ANYWHERE if not rule.ports else None,
        destination_port_ranges=list(spans(rule.ports)) or None,
    )


def _refused(direction: Direction) -> azure.network.SecurityRuleArgs:
    return azure.network.SecurityRuleArgs(
        name=f"{direction.lower()}-nothing-else",
        description="What has no row in the table of flows is closed.",
        priority=LAST,
        direction=direction.value,
        access="Deny",
        protocol="*",
        source_port_range=ANYWHERE,
        source_address_prefix=ANYWHERE,
        destination_address_prefix=ANYWHERE,
        destination_port_range=ANYWHERE,
    )
