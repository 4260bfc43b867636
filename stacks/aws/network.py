"""The cluster's VPC: subnets by zone and role, and routes out of them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from cluster.subnets import ZoneSubnets, zone_subnets
from cluster.vpn import gateway
from stacks.aws.tags import tags

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class Zone:
    """The subnets for hosts in one zone. public: exists if the spec has a public endpoint."""

    api_servers: aws.ec2.Subnet
    etcd: aws.ec2.Subnet
    workers: aws.ec2.Subnet
    public: aws.ec2.Subnet | None


class Network(pulumi.ComponentResource):
    """A VPC over `network.nodes`. Its main route table is the one of all private subnets, so a subnet added by hand has no
    route to the internet other than theirs."""

    zones: dict[str, Zone]
    """Name of the zone, as in the spec -> its subnets."""
    routes: aws.ec2.DefaultRouteTable
    vpn: aws.ec2.VpnGateway | None
    """The region's end of tunnels, if a site has any."""

    def __init__(self, cluster: Cluster, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:aws:Network", f"{cluster.name}-network", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        self.vpc = self._vpc()
        self._close_default_group()
        self.vpn = self._vpn() if any(site.vpn for site in cluster.spec.sites.values()) else None
        internet = self._internet()
        self.routes = self._private(self._nat(internet))
        outward = self._public(internet) if cluster.spec.control_plane.public else None
        self.zones = {subnets.zone: self._zone(subnets, outward) for subnets in zone_subnets(cluster.spec)}
        self.register_outputs({})

    def _vpc(self) -> aws.ec2.Vpc:
        return aws.ec2.Vpc(
            self._cluster.name,
            cidr_block=str(self._cluster.spec.network.nodes),
            # Without it the private names of interface endpoints do not resolve.
            enable_dns_hostnames=True,
            tags=tags(self._cluster, "network"),
            opts=self._own,
        )

    def _close_default_group(self) -> None:
        """Empty the VPC's default group, which allows traffic among its members: machines without a security group get it."""
        aws.ec2.DefaultSecurityGroup(
            f"{self._cluster.name}-default",
            vpc_id=self.vpc.id,
            ingress=[],
            egress=[],
            tags=tags(self._cluster, "nobody"),
            opts=self._own,
        )

    def _vpn(self) -> aws.ec2.VpnGateway:
        return aws.ec2.VpnGateway(
            f"{self._cluster.name}-vpn",
            vpc_id=self.vpc.id,
            amazon_side_asn=str(gateway(self._cluster.spec).asn),
            tags=tags(self._cluster, "vpn"),
            opts=self._own,
        )

    def _internet(self) -> aws.ec2.InternetGateway:
        tagged = tags(self._cluster, "internet")
        return aws.ec2.InternetGateway(
            f"{self._cluster.name}-internet", vpc_id=self.vpc.id, tags=tagged, opts=self._own
        )

    def _nat(self, internet: aws.ec2.InternetGateway) -> aws.ec2.NatGateway:
        """Create a gateway that AWS keeps in every zone with hosts, with addresses that AWS chooses; it needs no public subnet
        ("Regional NAT gateways for automatic multi-AZ expansion"). The loss of a zone does not affect other zones' traffic."""
        return aws.ec2.NatGateway(
            f"{self._cluster.name}-nat",
            vpc_id=self.vpc.id,
            availability_mode="regional",
            tags=tags(self._cluster, "nat"),
            # AWS creates none until the VPC has its internet gateway, and no argument refers to that.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[internet]),
        )

    def _private(self, nat: aws.ec2.NatGateway) -> aws.ec2.DefaultRouteTable:
        """Create the private route table. BGP adds the racks of sites to it."""
        return aws.ec2.DefaultRouteTable(
            f"{self._cluster.name}-private",
            default_route_table_id=self.vpc.default_route_table_id,
            routes=[aws.ec2.DefaultRouteTableRouteArgs(cidr_block=ANYWHERE, nat_gateway_id=nat.id)],
            propagating_vgws=[self.vpn.id] if self.vpn else [],
            tags=tags(self._cluster, "private"),
            opts=self._own,
        )

    def _public(self, internet: aws.ec2.InternetGateway) -> aws.ec2.RouteTable:
        """Create the routes of the subnets for a public load balancer, and only these."""
        return aws.ec2.RouteTable(
            f"{self._cluster.name}-public",
            vpc_id=self.vpc.id,
            routes=[aws.ec2.RouteTableRouteArgs(cidr_block=ANYWHERE, gateway_id=internet.id)],
            tags=tags(self._cluster, "public"),
            opts=self._own,
        )

    def _zone(self, subnets: ZoneSubnets, outward: aws.ec2.RouteTable | None) -> Zone:
        public = None
        if outward:
            public = self._subnet("public", subnets.zone, subnets.public)
            aws.ec2.RouteTableAssociation(
                f"{self._cluster.name}-public-{subnets.zone}",
                subnet_id=public.id,
                route_table_id=outward.id,
                opts=self._own,
            )
        return Zone(
            self._subnet("api-servers", subnets.zone, subnets.api_servers),
            self._subnet("etcd", subnets.zone, subnets.etcd),
            self._subnet("workers", subnets.zone, subnets.workers),
            public,
        )

    def _subnet(self, role: str, zone: str, range_: IPv4Network) -> aws.ec2.Subnet:
        by_name = zone.startswith(self._cluster.spec.control_plane.region)
        return aws.ec2.Subnet(
            f"{self._cluster.name}-{role}-{zone}",
            vpc_id=self.vpc.id,
            cidr_block=str(range_),
            availability_zone=zone if by_name else None,
            availability_zone_id=None if by_name else zone,
            tags=tags(self._cluster, role, zone),
            opts=self._own,
        )
