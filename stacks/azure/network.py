"""The cluster's virtual network: a subnet for each role, over all zones, and the one way out of them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network

import pulumi
import pulumi_azure_native as azure

from cluster import catalogue
from cluster.spec import Cluster
from cluster.subnets import region_subnets
from stacks.azure.tags import tags

GATEWAY_SUBNET = "GatewaySubnet"
"""The name that a VPN gateway's subnet must have. It takes no security group ("VPN Gateway settings")."""

NAT_SKU = "Standard"
"""In one zone, which Azure chooses. StandardV2 spans the zones ("Azure NAT Gateway SKUs"); it came with version
2025-01-01 of the API, and azure-native 3.29 speaks 2024-05-01."""


class Network(pulumi.ComponentResource):
    """A virtual network over `network.nodes`. Only the NAT gateway has a public address."""

    subnets: dict[str, azure.network.Subnet]
    """Name -> subnet."""

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        security: Mapping[str, azure.network.NetworkSecurityGroup],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Network", "network", None, opts)
        self._cluster = cluster
        self._group = group
        self._own = pulumi.ResourceOptions(parent=self)
        self.network = azure.network.VirtualNetwork(
            "network",
            resource_group_name=group,
            address_space=azure.network.AddressSpaceArgs(address_prefixes=[str(cluster.spec.network.nodes)]),
            tags=tags(cluster, "network"),
            opts=self._own,
        )
        nat = self._nat()
        self.subnets = {}
        for name, range_ in self._ranges().items():
            self.subnets[name] = self._subnet(name, range_, security.get(name), nat)
        self.register_outputs({})

    def _ranges(self) -> dict[str, IPv4Network]:
        spec, ranges = self._cluster.spec, region_subnets(self._cluster.spec)
        wanted = {"api-servers": ranges.api_servers, "etcd": ranges.etcd, "endpoints": ranges.endpoints}
        if spec.cloud_workers:
            wanted["workers"] = ranges.workers
        if any(site.vpn for site in spec.sites.values()):
            wanted[GATEWAY_SUBNET] = ranges.gateway
        return wanted

    def _nat(self) -> azure.network.NatGateway:
        address = azure.network.PublicIPAddress(
            "nat",
            resource_group_name=self._group,
            sku=azure.network.PublicIPAddressSkuArgs(name=NAT_SKU),
            public_ip_allocation_method="Static",
            zones=zones_of_region(self._cluster),
            tags=tags(self._cluster, "nat"),
            opts=self._own,
        )
        return azure.network.NatGateway(
            "nat",
            resource_group_name=self._group,
            sku=azure.network.NatGatewaySkuArgs(name=NAT_SKU),
            public_ip_addresses=[azure.network.SubResourceArgs(id=address.id)],
            tags=tags(self._cluster, "nat"),
            opts=self._own,
        )

    def _subnet(
        self,
        name: str,
        range_: IPv4Network,
        group: azure.network.NetworkSecurityGroup | None,
        nat: azure.network.NatGateway,
    ) -> azure.network.Subnet:
        hosts = name not in ("endpoints", GATEWAY_SUBNET)
        # A network takes one change of its subnets at a time.
        after = list(self.subnets.values())[-1:]
        return azure.network.Subnet(
            name,
            resource_group_name=self._group,
            virtual_network_name=self.network.name,
            subnet_name=name,
            address_prefix=str(range_),
            network_security_group=azure.network.NetworkSecurityGroupArgs(id=group.id) if group else None,
            nat_gateway=azure.network.SubResourceArgs(id=nat.id) if hosts else None,
            # Without it a group says nothing about private endpoints ("Manage network policies for private endpoints").
            private_endpoint_network_policies="NetworkSecurityGroupEnabled" if name == "endpoints" else None,
            default_outbound_access=None if name == GATEWAY_SUBNET else False,
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )


def zones_of_region(cluster: Cluster) -> list[str]:
    """What is to survive the loss of any zone names them all, not only those that hosts stand in."""
    plane = cluster.spec.control_plane
    return list(catalogue.of(plane.cloud).regions.zones.get(plane.region) or map(str, plane.zones))
