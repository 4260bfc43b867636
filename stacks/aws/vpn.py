"""The tunnels to sites, with BGP: a connection to the VPC's gateway for each edge router.

A connection has both tunnels of a router, one to each end of the gateway.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.spec import Cloud, Cluster
from cluster.vpn import GATEWAYS
from network.vpn import Tunnel, tunnels
from stacks.aws.tags import tags
from stacks.facts import GatewayEnds, gateway_ends

_CIPHERS = {"AES-256-GCM-16": "AES256-GCM-16"}
"""`Tunnel.esp` -> AWS's name for it ("Tunnel options for your AWS Site-to-Site VPN connection")."""
_INTEGRITY = ["SHA2-256", "SHA2-384"]
_GROUPS = [19, 20, 21]
""""Algorithms" of NIST's curves P-256, P-384 and P-521 (IANA, IKEv2 parameters)."""

_SMALL_ASN = 2**31 - 1
""""CreateCustomerGateway": larger ones use a separate parameter."""


class Vpn(pulumi.ComponentResource):
    connections: dict[str, aws.ec2.VpnConnection]
    """Router -> its connection."""
    ends: pulumi.Output[GatewayEnds]
    """The cloud's end of each tunnel."""

    def __init__(self, cluster: Cluster, gateway: aws.ec2.VpnGateway, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:aws:Vpn", f"{cluster.name}-vpn", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        self._gateway = gateway
        by_router: dict[str, list[Tunnel]] = {}
        for tunnel in tunnels(cluster):
            by_router.setdefault(f"{tunnel.site}-{tunnel.router}", []).append(tunnel)
        self.connections = {router: self._connection(router, own) for router, own in by_router.items()}
        self.ends = gateway_ends(
            cluster,
            lambda tunnel: _address(self.connections[f"{tunnel.site}-{tunnel.router}"], tunnel.gateway_end),
            lambda tunnel: _name(self.connections[f"{tunnel.site}-{tunnel.router}"], tunnel.gateway_end),
        )
        self.register_outputs({})

    def _connection(self, router: str, own: list[Tunnel]) -> aws.ec2.VpnConnection:
        name, tagged = f"{self._cluster.name}-{router}", tags(self._cluster, "vpn", router)
        first = own[0]
        customer = aws.ec2.CustomerGateway(
            name,
            type="ipsec.1",
            bgp_asn=str(first.edge.asn) if first.edge.asn <= _SMALL_ASN else None,
            bgp_asn_extended=str(first.edge.asn) if first.edge.asn > _SMALL_ASN else None,
            ip_address=str(first.peer),
            certificate_arn=first.certificate.arn if first.certificate else None,
            device_name=router,
            tags=tagged,
            opts=self._own,
        )
        return aws.ec2.VpnConnection(
            name,
            type="ipsec.1",
            customer_gateway_id=customer.id,
            vpn_gateway_id=self._gateway.id,
            static_routes_only=False,
            tags=tagged,
            # Keys and the configuration that AWS generates for the router.
            opts=pulumi.ResourceOptions(
                parent=self, additional_secret_outputs=["customerGatewayConfiguration", *_secrets(own)]
            ),
            **{key: value for tunnel in own for key, value in _options(tunnel).items()},
        )


def _address(connection: aws.ec2.VpnConnection, end: int) -> pulumi.Output[str]:
    address: pulumi.Output[str] = connection.tunnel1_address if end == 0 else connection.tunnel2_address
    return address


def _name(connection: aws.ec2.VpnConnection, end: int) -> pulumi.Output[str]:
    """Return the subject of an end's certificate."""
    pattern = GATEWAYS[Cloud.AWS].certificate_name
    name: pulumi.Output[str] = connection.id.apply(lambda id_: pattern.format(connection=id_, end=end))
    return name


def _secrets(own: list[Tunnel]) -> list[str]:
    return [f"tunnel{tunnel.gateway_end + 1}PresharedKey" for tunnel in own]


def _options(tunnel: Tunnel) -> dict[str, Any]:
    """Return a tunnel's options. Either end initiates, and restarts the tunnel when the other is silent."""
    cipher = _CIPHERS[tunnel.esp]
    options: dict[str, Any] = {
        "inside_cidr": str(tunnel.cloud.address.network),
        "preshared_key": pulumi.Config().require_secret(tunnel.secret) if tunnel.secret else None,
        "ike_versions": [f"ikev{tunnel.ike_version}"],
        "startup_action": "start",
        "dpd_timeout_action": "restart",
    }
    for phase in ("phase1", "phase2"):
        options |= {
            f"{phase}_encryption_algorithms": [cipher],
            f"{phase}_integrity_algorithms": _INTEGRITY,
            f"{phase}_dh_group_numbers": _GROUPS,
        }
    return {f"tunnel{tunnel.gateway_end + 1}_{key}": value for key, value in options.items()}
