"""The cluster's virtual network: a subnet for each role, across all zones, and their only route to the internet."""

from __future__ import annotations

from ipaddress import IPv4Network

import pulumi
import pulumi_azure_native as azure

from cluster import catalogue
from cluster.spec import Cluster
from cluster.subnets import region_subnets
from stacks.azure.tags import tags

GATEWAY_SUBNET = "GatewaySubnet"
"""The required name of a VPN gateway's subnet. It accepts no security group ("VPN Gateway settings")."""

NAT_SKU = "Standard"
"""In one zone, which Azure chooses. StandardV2 spans the zones ("Azure NAT Gateway SKUs"); it was introduced in API
version 2025-01-01, and azure-native 3.29 uses 2024-05-01."""


class Network(pulumi.ComponentResource):
    """A virtual network over `network.nodes` with its subnets declared inside: Azure accepts one change of them at a time,
    and so they change together. Only the NAT gateway has a public address."""

    subnets: dict[str, pulumi.Output[str]]
    """Name -> ID."""

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        security: azure.network.NetworkSecurityGroup,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Network", "network", None, opts)
        self._cluster = cluster
        self._group = group
        self._own = pulumi.ResourceOptions(parent=self)
        nat, ranges = self._nat(), self._ranges()
        self.network = azure.network.VirtualNetwork(
            "network",
            resource_group_name=group,
            address_space=azure.network.AddressSpaceArgs(address_prefixes=[str(cluster.spec.network.nodes)]),
            subnets=[_subnet(name, range_, security, nat) for name, range_ in ranges.items()],
            tags=tags(cluster, "network"),
            opts=self._own,
        )
        self.subnets = {name: pulumi.Output.concat(self.network.id, "/subnets/", name) for name in ranges}
        self.register_outputs({})

    def _ranges(self) -> dict[str, IPv4Network]:
        spec, ranges = self._cluster.spec, region_subnets(self._cluster.spec)
        needed = {"api-servers": ranges.api_servers, "etcd": ranges.etcd, "endpoints": ranges.endpoints}
        if spec.cloud_workers:
            needed["workers"] = ranges.workers
        if any(site.vpn for site in spec.sites.values()):
            needed[GATEWAY_SUBNET] = ranges.gateway
        return needed

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
    name: str, range_: IPv4Network, security: azure.network.NetworkSecurityGroup, nat: azure.network.NatGateway
) -> azure.network.SubnetArgs:
    is_for_gateway, has_hosts = name == GATEWAY_SUBNET, name not in ("endpoints", GATEWAY_SUBNET)
    return azure.network.SubnetArgs(
        name=name,
        address_prefix=str(range_),
        network_security_group=None if is_for_gateway else azure.network.NetworkSecurityGroupArgs(id=security.id),
        nat_gateway=azure.network.SubResourceArgs(id=nat.id) if has_hosts else None,
        # Without it a group does not apply to private endpoints ("Manage network policies for private endpoints").
        private_endpoint_network_policies="NetworkSecurityGroupEnabled" if name == "endpoints" else None,
        default_outbound_access=None if is_for_gateway else False,
    )


def zones_of_region(cluster: Cluster) -> list[str]:
    """Return all zones of the region. Resources that must survive the loss of any zone name them all, with or without hosts."""
    plane = cluster.spec.control_plane
    return list(catalogue.of(plane.cloud).regions.zones.get(plane.region) or map(str, plane.zones))
