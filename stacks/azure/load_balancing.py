"""Load balancers in front of the API servers: one inside the network, and one on the internet if the spec requests it."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.apiserver import probe_path
from stacks.azure.network import zones_of_region
from stacks.azure.tags import tags

PORTS: Mapping[str, int] = {"api": API_PORT, "konnectivity": KONNECTIVITY_PORT}
PUBLIC_PORTS: Mapping[str, int] = {"api": API_PORT}
_PROBE, _FRONTEND, _POOL = "ready", "api", "api-servers"
_PROBE_EVERY_S = 5
_FAILURES = 2
_IDLE_MIN = 30
"""Watches and konnectivity's tunnels may be silent for long; 4 to 100 minutes are possible."""


class Balancer(pulumi.ComponentResource):
    """Standard and regional, so across all zones. Its hosts reach the internet through the NAT gateway, never through its
    frontend: a subnet's NAT gateway takes precedence over a load balancer's address, and there are no outbound rules ("Azure
    NAT Gateway and outbound connections")."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        group: azure.resources.ResourceGroup,
        frontend: Mapping[str, object],
        ports: Mapping[str, int],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """frontend: its address, with the arguments of `FrontendIPConfigurationArgs`."""
        super().__init__("menagerie:azure:Balancer", name, None, opts)
        self._name = name
        self._group = group
        probe = azure.network.ProbeArgs(
            name=_PROBE,
            protocol="Https",
            port=API_PORT,
            request_path=probe_path(),
            interval_in_seconds=_PROBE_EVERY_S,
            probe_threshold=_FAILURES,
        )
        front = azure.network.FrontendIPConfigurationArgs(name=_FRONTEND)
        for key, value in frontend.items():
            setattr(front, key, value)
        self.made = azure.network.LoadBalancer(
            name,
            load_balancer_name=name,
            resource_group_name=group.name,
            sku=azure.network.LoadBalancerSkuArgs(name="Standard", tier="Regional"),
            frontend_ip_configurations=[front],
            backend_address_pools=[azure.network.BackendAddressPoolArgs(name=_POOL)],
            probes=[probe],
            load_balancing_rules=[self._rule(rule, port) for rule, port in ports.items()],
            tags=tags(cluster, name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.pool = self._part("backendAddressPools", _POOL)
        self.probe = self._part("probes", _PROBE)
        self.register_outputs({})

    def _part(self, kind: str, name: str) -> pulumi.Output[str]:
        """Return the ID of a part of the load balancer; its own rules need it before the load balancer exists."""
        return pulumi.Output.format(
            "{0}/providers/Microsoft.Network/loadBalancers/{1}/{2}/{3}", self._group.id, self._name, kind, name
        )

    def _rule(self, name: str, port: int) -> azure.network.LoadBalancingRuleArgs:
        return azure.network.LoadBalancingRuleArgs(
            name=name,
            protocol="Tcp",
            frontend_port=port,
            backend_port=port,
            frontend_ip_configuration=azure.network.SubResourceArgs(
                id=self._part("frontendIPConfigurations", _FRONTEND)
            ),
            backend_address_pool=azure.network.SubResourceArgs(id=self._part("backendAddressPools", _POOL)),
            probe=azure.network.SubResourceArgs(id=self._part("probes", _PROBE)),
            idle_timeout_in_minutes=_IDLE_MIN,
            enable_tcp_reset=True,
            disable_outbound_snat=True,
        )


def public_address(
    cluster: Cluster, group: azure.resources.ResourceGroup, opts: pulumi.ResourceOptions
) -> azure.network.PublicIPAddress:
    """Create an address in all zones. Kept when the load balancer is replaced: an external DNS name points at it."""
    return azure.network.PublicIPAddress(
        "api-public",
        resource_group_name=group.name,
        sku=azure.network.PublicIPAddressSkuArgs(name="Standard"),
        public_ip_allocation_method="Static",
        zones=zones_of_region(cluster),
        tags=tags(cluster, "api-public"),
        opts=opts,
    )
