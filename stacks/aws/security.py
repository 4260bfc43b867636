"""Security groups, from the table of flows and nothing beside it."""

from __future__ import annotations

from ipaddress import IPv4Network

import pulumi
import pulumi_aws as aws

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from flows.flow import Protocol, Role
from flows.table import flows
from stacks.aws.network import Network
from stacks.aws.rules import Direction, Peer, Rule, groups, ranges_of, rules, slug
from stacks.aws.tags import tags

_EVERY_PROTOCOL = "-1"


class SecurityGroups(pulumi.ComponentResource):
    """A group for each role that has hosts or endpoints in the VPC, and a rule for each flow at either end.

    source: where hosts download.
    """

    of: dict[Role, aws.ec2.SecurityGroup]

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        source: ArtefactSource,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:SecurityGroups", f"{cluster.name}-security-groups", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        table = flows(cluster, source)
        self.of = {role: self._group(role, network) for role in groups(table)}
        for rule, why in rules(table, ranges_of(cluster, source)).items():
            self._rule(rule, why)
        self.register_outputs({})

    def _group(self, role: Role, network: Network) -> aws.ec2.SecurityGroup:
        # Without rules: the provider also takes away the one that AWS adds, which lets everything out.
        return aws.ec2.SecurityGroup(
            f"{self._cluster.name}-{slug(role)}",
            vpc_id=network.vpc.id,
            description=f"{self._cluster.name}: {role.value}",
            tags=tags(self._cluster, slug(role)),
            opts=self._own,
        )

    def _rule(self, rule: Rule, why: str) -> None:
        inwards = rule.direction is Direction.IN
        declare = aws.vpc.SecurityGroupIngressRule if inwards else aws.vpc.SecurityGroupEgressRule
        declare(
            f"{self._cluster.name}-{rule.name}",
            security_group_id=self.of[rule.group].id,
            referenced_security_group_id=self._id_of(rule.peer),
            cidr_ipv4=str(rule.peer) if isinstance(rule.peer, IPv4Network) else None,
            ip_protocol=_EVERY_PROTOCOL if rule.protocol is Protocol.ALL else rule.protocol.value,
            from_port=rule.port,
            to_port=rule.port,
            description=why,
            tags=tags(self._cluster, slug(rule.group)),
            opts=self._own,
        )

    def _id_of(self, peer: Peer) -> pulumi.Output[str] | None:
        return self.of[peer].id if isinstance(peer, Role) else None
