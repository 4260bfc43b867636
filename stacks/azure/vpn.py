"""The region's end of the tunnels to sites: an active-active gateway with BGP, and a connection for each edge router.

A connection has both tunnels of a router, one to each instance of the gateway ("About active-active mode VPN
gateways"). Azure has one BGP address per router; the instances have one per tunnel (`cluster.vpn.Gateway`).
"""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from cluster.vpn import ENDS, gateway
from network.vpn import Tunnel, tunnels
from stacks.azure.network import zones_of_region
from stacks.azure.tags import tags
from stacks.facts import gateway_ends
from stacks.names import short
from stacks.protection import is_protected

_SKU = "VpnGw2AZ"
""""About VPN Gateway configuration settings": zone-redundant; in generation 2, 1.25 Gbit/s in total, 30 tunnels."""
_GATEWAY = "vpn"
_LONGEST = 72
_KEY_LIFETIME_S = 27000
_KEY_LIFETIME_KB = 102_400_000
""""About cryptographic requirements and Azure VPN gateways": the defaults."""


class Vpn(pulumi.ComponentResource):
    """Azure needs 45 minutes or more to create the gateway. Routers connect to its two public addresses."""

    def __init__(
        self,
        cluster: Cluster,
        group: azure.resources.ResourceGroup,
        subnet: pulumi.Output[str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Vpn", "vpn", None, opts)
        self._cluster = cluster
        self._group = group
        self._own = pulumi.ResourceOptions(parent=self)
        plan = tunnels(cluster)
        self.addresses = [self._address(end) for end in range(ENDS)]
        self.gateway = self._gateway(subnet, plan)
        for site, router in dict.fromkeys((tunnel.site, tunnel.router) for tunnel in plan):
            self._connection([tunnel for tunnel in plan if (tunnel.site, tunnel.router) == (site, router)])
        self.ends = gateway_ends(
            cluster, lambda tunnel: self.addresses[tunnel.gateway_end].ip_address.apply(lambda address: address or "")
        )
        self.register_outputs({})

    def _address(self, end: int) -> azure.network.PublicIPAddress:
        """Create an address. Kept when the gateway is replaced, because routers are configured with it."""
        return azure.network.PublicIPAddress(
            f"vpn-{end}",
            resource_group_name=self._group.name,
            sku=azure.network.PublicIPAddressSkuArgs(name="Standard"),
            public_ip_allocation_method="Static",
            zones=zones_of_region(self._cluster),
            tags=tags(self._cluster, "vpn"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )

    def _gateway(self, subnet: pulumi.Output[str], plan: Iterable[Tunnel]) -> azure.network.VirtualNetworkGateway:
        ends = [
            azure.network.VirtualNetworkGatewayIPConfigurationArgs(
                name=f"end-{end}",
                subnet=azure.network.SubResourceArgs(id=subnet),
                public_ip_address=azure.network.SubResourceArgs(id=address.id),
                private_ip_allocation_method="Dynamic",
            )
            for end, address in enumerate(self.addresses)
        ]
        inside = [
            azure.network.IPConfigurationBgpPeeringAddressArgs(
                ipconfiguration_id=self._end(end),
                custom_bgp_ip_addresses=[str(tunnel.cloud.address.ip) for tunnel in plan if tunnel.gateway_end == end],
            )
            for end in range(ENDS)
        ]
        return azure.network.VirtualNetworkGateway(
            _GATEWAY,
            virtual_network_gateway_name=_GATEWAY,
            resource_group_name=self._group.name,
            gateway_type="Vpn",
            vpn_type="RouteBased",
            vpn_gateway_generation="Generation2",
            sku=azure.network.VirtualNetworkGatewaySkuArgs(name=_SKU, tier=_SKU),
            active_active=True,
            enable_bgp=True,
            ip_configurations=ends,
            bgp_settings=azure.network.BgpSettingsArgs(
                asn=gateway(self._cluster.spec).asn, bgp_peering_addresses=inside
            ),
            tags=tags(self._cluster, "vpn"),
            opts=self._own,
        )

    def _end(self, end: int) -> pulumi.Output[str]:
        return pulumi.Output.format(
            "{0}/providers/Microsoft.Network/virtualNetworkGateways/{1}/ipConfigurations/end-{2}",
            self._group.id,
            _GATEWAY,
            end,
        )

    def _connection(self, both: list[Tunnel]) -> None:
        """Create a connection. both: the tunnels of one router."""
        first = both[0]
        name = short(f"{first.site}-{first.router}", _LONGEST)
        router = azure.network.LocalNetworkGateway(
            name,
            resource_group_name=self._group.name,
            gateway_ip_address=str(first.peer),
            # Routes are exchanged only by BGP.
            local_network_address_space=azure.network.AddressSpaceArgs(address_prefixes=[]),
            bgp_settings=azure.network.BgpSettingsArgs(
                asn=first.edge.asn, bgp_peering_address=str(first.edge.address.ip)
            ),
            tags=tags(self._cluster, "vpn"),
            opts=self._own,
        )
        azure.network.VirtualNetworkGatewayConnection(
            name,
            resource_group_name=self._group.name,
            connection_type="IPsec",
            connection_protocol="IKEv2",
            virtual_network_gateway1=azure.network.VirtualNetworkGatewayArgs(id=self.gateway.id),
            local_network_gateway2=azure.network.LocalNetworkGatewayArgs(id=router.id),
            enable_bgp=True,
            gateway_custom_bgp_ip_addresses=[
                azure.network.GatewayCustomBgpIpAddressIpConfigurationArgs(
                    ip_configuration_id=self._end(tunnel.gateway_end),
                    custom_bgp_ip_address=str(tunnel.cloud.address.ip),
                )
                for tunnel in both
            ],
            ipsec_policies=[_policy()],
            shared_key=pulumi.Config().require_secret(first.secret),
            tags=tags(self._cluster, "vpn"),
            opts=self._own,
        )


def _policy() -> azure.network.IpsecPolicyArgs:
    """Return a policy: exactly what `Tunnel.esp` says, with the same strength in IKE and for each new key."""
    return azure.network.IpsecPolicyArgs(
        ike_encryption="GCMAES256",
        ike_integrity="SHA384",
        dh_group="ECP384",
        ipsec_encryption="GCMAES256",
        ipsec_integrity="GCMAES256",
        pfs_group="ECP384",
        sa_life_time_seconds=_KEY_LIFETIME_S,
        sa_data_size_kilobytes=_KEY_LIFETIME_KB,
    )
