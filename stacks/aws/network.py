"""The cluster's VPC: subnets by zone and role, and the ways out of them."""

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
    """The subnets of one zone that hosts are plugged into. public: where the spec has a public endpoint."""

    api_servers: aws.ec2.Subnet
    etcd: aws.ec2.Subnet
    workers: aws.ec2.Subnet
    public: aws.ec2.Subnet | None


class Network(pulumi.ComponentResource):
    """A VPC over `network.nodes`. Its main route table is that of all private subnets: a subnet that somebody adds has
    no way to the internet but theirs."""

    zones: dict[str, Zone]
    """Name of the zone, as in the spec -> what is in it."""
    routes: aws.ec2.DefaultRouteTable
    vpn: aws.ec2.VpnGateway | None
    """The region's end of tunnels, where a site has some."""

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
        """Whatever is started without a security group gets the VPC's default one, which lets its members talk."""
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
        """One that AWS keeps in every zone with hosts, with addresses of AWS's choice, and needs no public subnet
        ("Regional NAT gateways for automatic multi-AZ expansion"): the loss of a zone takes no way out from another."""
        return aws.ec2.NatGateway(
            f"{self._cluster.name}-nat",
            vpc_id=self.vpc.id,
            availability_mode="regional",
            tags=tags(self._cluster, "nat"),
            # AWS makes none before the VPC has its internet gateway, and none of its arguments names that.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[internet]),
        )

    def _private(self, nat: aws.ec2.NatGateway) -> aws.ec2.DefaultRouteTable:
        """Racks of sites come into it as BGP tells of them."""
        return aws.ec2.DefaultRouteTable(
            f"{self._cluster.name}-private",
            default_route_table_id=self.vpc.default_route_table_id,
            routes=[aws.ec2.DefaultRouteTableRouteArgs(cidr_block=ANYWHERE, nat_gateway_id=nat.id)],
            propagating_vgws=[self.vpn.id] if self.vpn else [],
            tags=tags(self._cluster, "private"),
            opts=self._own,
        )

    def _public(self, internet: aws.ec2.InternetGateway) -> aws.ec2.RouteTable:
        """Routes of the subnets that a public load balancer stands in, and nothing else."""
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
