"""The region's end of the tunnels to sites: HA VPN with BGP.

Each edge router is a peer gateway with one address and has a tunnel to each of the gateway's two interfaces ("HA VPN
topologies"): adding or removing a router does not affect the tunnels of others.
"""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.vpn import gateway
from network.vpn import Tunnel, tunnels
from stacks.facts import gateway_ends
from stacks.gcp.network import Network
from stacks.gcp.tags import generated, labels


class Vpn(pulumi.ComponentResource):
    """Routers connect to the gateway's two public addresses."""

    def __init__(self, cluster: Cluster, network: Network, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Vpn", f"{cluster.name}-vpn", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        self.gateway = gcp.compute.HaVpnGateway(
            generated(cluster, "vpn"), network=network.network.id, stack_type="IPV4_ONLY", opts=self._own
        )
        self.router = gcp.compute.Router(
            generated(cluster, "vpn"),
            network=network.network.id,
            bgp=gcp.compute.RouterBgpArgs(asn=gateway(cluster.spec).asn),
            opts=self._own,
        )
        plan = tunnels(cluster)
        peers = {(tunnel.site, tunnel.router): self._peer(tunnel) for tunnel in plan if tunnel.gateway_end == 0}
        policies = {site: self._policy(tunnel) for site, tunnel in {tunnel.site: tunnel for tunnel in plan}.items()}
        for tunnel in plan:
            self._tunnel(tunnel, peers[tunnel.site, tunnel.router], policies[tunnel.site])
        self.ends = gateway_ends(cluster, lambda tunnel: self._address(tunnel.gateway_end))
        self.register_outputs({})

    def _address(self, end: int) -> pulumi.Output[str]:
        address: pulumi.Output[str] = self.gateway.vpn_interfaces.apply(
            lambda interfaces: next((str(interface.ip_address) for interface in interfaces if interface.id == end), "")
        )
        return address

    def _peer(self, tunnel: Tunnel) -> gcp.compute.ExternalVpnGateway:
        return gcp.compute.ExternalVpnGateway(
            generated(self._cluster, tunnel.site, tunnel.router),
            redundancy_type="SINGLE_IP_INTERNALLY_REDUNDANT",
            interfaces=[gcp.compute.ExternalVpnGatewayInterfaceArgs(id=0, ip_address=str(tunnel.peer))],
            labels=labels("vpn"),
            opts=self._own,
        )

    def _policy(self, tunnel: Tunnel) -> gcp.compute.RouterRoutePolicy:
        """Accept only routes to a site's racks from its routers, whatever else they announce ("BGP route policy attribute reference")."""
        ranges = ", ".join(f"prefix('{range_}').orLonger()" for range_ in tunnel.edge.announces)
        return gcp.compute.RouterRoutePolicy(
            generated(self._cluster, "from", tunnel.site),
            router=self.router.name,
            type="ROUTE_POLICY_TYPE_IMPORT",
            terms=[
                gcp.compute.RouterRoutePolicyTermArgs(
                    priority=1,
                    match=gcp.compute.RouterRoutePolicyTermMatchArgs(
                        expression=f"!destination.inAnyRange([{ranges}])", title="what is not of the site"
                    ),
                    actions=[gcp.compute.RouterRoutePolicyTermActionArgs(expression="drop()")],
                )
            ],
            opts=self._own,
        )

    def _tunnel(
        self, tunnel: Tunnel, peer: gcp.compute.ExternalVpnGateway, policy: gcp.compute.RouterRoutePolicy
    ) -> None:
        name = generated(self._cluster, tunnel.site, tunnel.router, str(tunnel.gateway_end))
        vpn_tunnel = gcp.compute.VPNTunnel(
            name,
            vpn_gateway=self.gateway.id,
            vpn_gateway_interface=tunnel.gateway_end,
            peer_external_gateway=peer.id,
            peer_external_gateway_interface=0,
            router=self.router.id,
            ike_version=tunnel.ike_version,
            shared_secret=pulumi.Config().require_secret(tunnel.secret),
            cipher_suite=gcp.compute.VPNTunnelCipherSuiteArgs(
                phase2=gcp.compute.VPNTunnelCipherSuitePhase2Args(encryptions=[_cipher(tunnel.esp)])
            ),
            labels=labels("vpn"),
            opts=self._own,
        )
        inside = gcp.compute.RouterInterface(
            name,
            router=self.router.name,
            ip_range=str(tunnel.cloud.address),
            vpn_tunnel=vpn_tunnel.name,
            opts=self._own,
        )
        gcp.compute.RouterPeer(
            name,
            router=self.router.name,
            interface=inside.name,
            ip_address=str(tunnel.cloud.address.ip),
            peer_ip_address=str(tunnel.edge.address.ip),
            peer_asn=tunnel.edge.asn,
            advertise_mode="CUSTOM",
            advertised_ip_ranges=[
                gcp.compute.RouterPeerAdvertisedIpRangeArgs(range=str(range_)) for range_ in tunnel.cloud.announces
            ],
            import_policies=[policy.name],
            opts=self._own,
        )


def _cipher(esp: str) -> str:
    """Return AES-256-GCM-16 in Google's spelling ("Supported IKE ciphers"), which puts the tag's bytes first."""
    name, bits, mode, check = esp.split("-")
    return f"{name}-{mode}-{check}-{bits}"
