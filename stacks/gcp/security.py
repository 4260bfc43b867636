"""Firewall rules, from the table of flows and nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from flows.flow import Protocol
from flows.table import flows
from network.addresses import AddressPlan
from stacks.gcp.network import Network
from stacks.gcp.rules import ANYWHERE, Direction, Rule, rules
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import generated

_LAST = 65534
"""Before Google's own last rules, which let everything out and nothing in."""
_LONGEST_DESCRIPTION = 2048


class Firewalls(pulumi.ComponentResource):
    """What comes in is closed already; what goes out is, by one rule for the whole network."""

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
        self._cluster = cluster
        self._network = network
        self._identities = identities
        self._own = pulumi.ResourceOptions(parent=self)
        self.made = [self._allowed(rule) for rule in rules(cluster, plan, source, flows(cluster, source))]
        self.made.append(
            gcp.compute.Firewall(
                generated(cluster, "nothing-else-out"),
                network=network.network.id,
                description="What has no row in the table of flows is closed.",
                direction=Direction.OUT.value,
                priority=_LAST,
                denies=[gcp.compute.FirewallDenyArgs(protocol=Protocol.ALL.value)],
                destination_ranges=[ANYWHERE],
                opts=self._own,
            )
        )
        self.register_outputs({})

    def _allowed(self, rule: Rule) -> gcp.compute.Firewall:
        inwards = rule.direction is Direction.IN
        return gcp.compute.Firewall(
            generated(self._cluster, rule.name),
            network=self._network.network.id,
            description=rule.why[:_LONGEST_DESCRIPTION],
            direction=rule.direction.value,
            allows=[
                gcp.compute.FirewallAllowArgs(protocol=protocol.value, ports=list(map(str, ports)) or None)
                for protocol, ports in rule.services
            ],
            target_service_accounts=self._emails(rule.targets),
            source_service_accounts=self._emails(rule.peers) or None,
            source_ranges=list(rule.ranges) if inwards and rule.ranges else None,
            destination_ranges=None if inwards else list(rule.ranges),
            opts=self._own,
        )

    def _emails(self, readers: tuple[str, ...]) -> list[pulumi.Output[str]]:
        return [self._identities[reader].account.email for reader in readers]
