"""Access to the vault and the storage account without the internet or the NAT gateway."""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from stacks.azure.dns import linked_zone
from stacks.azure.network import Network
from stacks.azure.tags import tags


class Endpoints(pulumi.ComponentResource):
    """A private endpoint for each, with its name in a zone that the network resolves ("Azure Private Endpoint private DNS
    zone values")."""

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        network: Network,
        vault: pulumi.Input[str],
        account: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """vault, account: IDs; account is None if nothing in the network uses it."""
        super().__init__("menagerie:azure:Endpoints", "endpoints", None, opts)
        self._cluster = cluster
        self._group = group
        self._network = network
        self.made: list[pulumi.Resource] = []
        """Resources that publish the names; depend on them."""
        self.add("vault", vault, "privatelink.vaultcore.azure.net")
        if account is not None:
            self.add("blob", account, "privatelink.blob.core.windows.net")
        self.register_outputs({})

    def add(self, service: str, id_: pulumi.Input[str], domain: str) -> None:
        """Create an endpoint. service: Azure's name for it and ours."""
        own = pulumi.ResourceOptions(parent=self)
        endpoint = azure.network.PrivateEndpoint(
            service,
            resource_group_name=self._group,
            subnet=azure.network.SubnetArgs(id=self._network.subnets["endpoints"]),
            private_link_service_connections=[
                azure.network.PrivateLinkServiceConnectionArgs(
                    name=service, private_link_service_id=id_, group_ids=[service]
                )
            ],
            tags=tags(self._cluster, "endpoints"),
            opts=own,
        )
        zone = linked_zone(self._cluster, service, domain, self._group, self._network, own)
        zone_group = azure.network.PrivateDnsZoneGroup(
            service,
            resource_group_name=self._group,
            private_endpoint_name=endpoint.name,
            private_dns_zone_group_name="default",
            private_dns_zone_configs=[
                azure.network.PrivateDnsZoneConfigArgs(name=service, private_dns_zone_id=zone.id)
            ],
            opts=own,
        )
        self.made.append(zone_group)
