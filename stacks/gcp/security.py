"""The firewall of the network: one policy with every rule, generated only from the table of flows."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp
from pulumi_gcp.compute import RegionNetworkFirewallPolicyWithRulesRuleArgs as RuleArgs
from pulumi_gcp.compute import RegionNetworkFirewallPolicyWithRulesRuleMatchArgs as MatchArgs
from pulumi_gcp.compute import RegionNetworkFirewallPolicyWithRulesRuleMatchLayer4ConfigArgs as ServiceArgs

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from components.flows.flow import Protocol, spans
from components.flows.table import flows
from network.addresses import AddressPlan
from stacks.gcp.network import Network
from stacks.gcp.rules import ANYWHERE, Direction, Rule, rules
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import generated, rule_name

_FIRST, _LAST = 1000, 65534
"""Priorities of rules: the lowest is evaluated first. Our rules overlap only with the last one, which denies."""
_LONGEST_DESCRIPTION = 2048


class Firewalls(pulumi.ComponentResource):
    """Ingress is denied by default; the policy's last rule denies egress for the whole network.

    The policy is regional, like the cluster. Its rules are updated in place.
    """

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        identities: Mapping[str, Identity],
        source: ArtefactSource,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:gcp:Firewalls", f"{cluster.name}-firewalls", None, opts)
        self._identities = identities
        own = pulumi.ResourceOptions(parent=self)
        allowed = rules(cluster, plan, source, flows(cluster, source))
        policy = gcp.compute.RegionNetworkFirewallPolicyWithRules(
            generated(cluster, "flows"),
            description=f"{cluster.name}: who opens connections to whom, from the table of flows.",
            rules=[*(self._allowed(number, rule) for number, rule in enumerate(allowed, _FIRST)), _nothing_else_out()],
            opts=own,
        )
        applied = gcp.compute.RegionNetworkFirewallPolicyAssociation(
            generated(cluster, "flows"),
            attachment_target=network.network.id,
            firewall_policy=policy.name,
            # A network has at most one policy of a region.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.made: list[pulumi.Resource] = [policy, applied]
        """What hosts need before they can reach anything."""
        self.register_outputs({})

    def _allowed(self, number: int, rule: Rule) -> RuleArgs:
        inwards, ranges = rule.direction is Direction.IN, list(rule.ranges)
        services = [
            ServiceArgs(ip_protocol=protocol.value, ports=list(spans(ports)) or None)
            for protocol, ports in rule.services
        ]
        return RuleArgs(
            priority=number,
            rule_name=rule_name(rule.name),
            description=rule.why[:_LONGEST_DESCRIPTION],
            direction=rule.direction.value,
            action="allow",
            match=MatchArgs(
                layer4_configs=services,
                src_ip_ranges=ranges if inwards else None,
                dest_ip_ranges=None if inwards else ranges,
            ),
            target_service_accounts=[self._identities[reader].account.email for reader in rule.targets],
        )


def _nothing_else_out() -> RuleArgs:
    return RuleArgs(
        priority=_LAST,
        rule_name="nothing-else-out",
        description="What has no row in the table of flows is closed.",
        direction=Direction.OUT.value,
        action="deny",
        match=MatchArgs(layer4_configs=[ServiceArgs(ip_protocol=Protocol.ALL.value)], dest_ip_ranges=[ANYWHERE]),
    )
