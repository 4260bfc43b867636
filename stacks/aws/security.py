"""Security groups, generated only from the table of flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from components.flows.flow import Protocol, Role
from components.flows.table import flows
from network.addresses import AddressPlan
from stacks.aws.network import Network
from stacks.aws.rules import Direction, Rule, groups, ranges_of, rules
from stacks.aws.tags import tags
from stacks.firewalls import slug

EVERY_PROTOCOL = "-1"


class SecurityGroups(pulumi.ComponentResource):
    """A group for each role that has hosts or endpoints in the VPC, with a rule for each flow at both ends.

    A group declares all its rules, so the next `up` removes rules added by hand. A changed rule is removed for a moment;
    existing connections stay.

    source: where hosts download.
    """

    of: dict[Role, aws.ec2.SecurityGroup]

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        source: ArtefactSource,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:SecurityGroups", f"{cluster.name}-security-groups", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        self.of = {}
        table = flows(cluster, source)
        rules_ = rules(table, ranges_of(cluster, plan, source))
        for role in groups(table):
            own = {rule: why for rule, why in rules_.items() if rule.group is role}
            self.of[role] = self._group(role, network, own)
        self.register_outputs({})

    def _group(self, role: Role, network: Network, own: Mapping[Rule, str]) -> aws.ec2.SecurityGroup:
        sides = {
            side: [self._rule(rule, why) for rule, why in own.items() if rule.direction is side] for side in Direction
        }
        return aws.ec2.SecurityGroup(
            f"{self._cluster.name}-{slug(role)}",
            vpc_id=network.vpc.id,
            description=f"{self._cluster.name}: {role.value}",
            # Also if there are none: the provider then removes the rule that AWS adds, which permits all egress.
            ingress=[aws.ec2.SecurityGroupIngressArgs(**rule) for rule in sides[Direction.IN]],
            egress=[aws.ec2.SecurityGroupEgressArgs(**rule) for rule in sides[Direction.OUT]],
            tags=tags(self._cluster, slug(role)),
            opts=self._own,
        )

    def _rule(self, rule: Rule, why: str) -> dict[str, Any]:
        # For "every protocol" both are 0.
        first, last = rule.ports or (0, 0)
        arguments: dict[str, Any] = {
            "protocol": EVERY_PROTOCOL if rule.protocol is Protocol.ALL else rule.protocol.value,
            "from_port": first,
            "to_port": last,
            "description": why,
        }
        if not isinstance(rule.peer, Role):
            return {**arguments, "cidr_blocks": [str(rule.peer)]}
        return (
            {**arguments, "self": True}
            if rule.peer is rule.group
            else {**arguments, "security_groups": [self.of[rule.peer].id]}
        )
