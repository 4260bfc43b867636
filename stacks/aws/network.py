"""The cluster's VPC: subnets by zone and role, and the ways out of them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from cluster.subnets import ZoneSubnets, zone_subnets
from stacks.aws.tags import tags

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class Zone:
    """The subnets of one zone that hosts are plugged into, and their routes."""

    api_servers: aws.ec2.Subnet
    etcd: aws.ec2.Subnet
    workers: aws.ec2.Subnet
    routes: aws.ec2.RouteTable


class Network(pulumi.ComponentResource):
    """A VPC over `network.nodes`. Only the NAT gateways, one a zone, have public addresses."""

    zones: dict[str, Zone]
    """Name of the zone, as in the spec -> what is in it."""

    def __init__(self, cluster: Cluster, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:aws:Network", f"{cluster.name}-network", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        self.vpc = self._vpc()
        self._close_default_group()
        self._outward = self._internet()
        self.zones = {subnets.zone: self._zone(subnets) for subnets in zone_subnets(cluster.spec)}
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

    def _internet(self) -> aws.ec2.RouteTable:
        """Routes of the public subnets."""
        name, tagged = f"{self._cluster.name}-internet", tags(self._cluster, "internet")
        gateway = aws.ec2.InternetGateway(name, vpc_id=self.vpc.id, tags=tagged, opts=self._own)
        route = aws.ec2.RouteTableRouteArgs(cidr_block=ANYWHERE, gateway_id=gateway.id)
        return aws.ec2.RouteTable(name, vpc_id=self.vpc.id, routes=[route], tags=tagged, opts=self._own)

    def _zone(self, subnets: ZoneSubnets) -> Zone:
        """A zone has a NAT gateway of its own: the loss of another zone takes no way out from it."""
        nat = self._nat(subnets)
        route = aws.ec2.RouteTableRouteArgs(cidr_block=ANYWHERE, nat_gateway_id=nat.id)
        routes = aws.ec2.RouteTable(
            f"{self._cluster.name}-{subnets.zone}",
            vpc_id=self.vpc.id,
            routes=[route],
            tags=tags(self._cluster, "private", subnets.zone),
            opts=self._own,
        )
        return Zone(
            self._subnet("api-servers", subnets.zone, subnets.api_servers, routes),
            self._subnet("etcd", subnets.zone, subnets.etcd, routes),
            self._subnet("workers", subnets.zone, subnets.workers, routes),
            routes,
        )

    def _nat(self, subnets: ZoneSubnets) -> aws.ec2.NatGateway:
        public = self._subnet("public", subnets.zone, subnets.public, self._outward)
        name, tagged = f"{self._cluster.name}-nat-{subnets.zone}", tags(self._cluster, "nat", subnets.zone)
        address = aws.ec2.Eip(name, domain="vpc", tags=tagged, opts=self._own)
        # AWS makes no NAT gateway before the VPC has its internet gateway, which the routes name.
        after = pulumi.ResourceOptions(parent=self, depends_on=[self._outward])
        return aws.ec2.NatGateway(name, subnet_id=public.id, allocation_id=address.id, tags=tagged, opts=after)

    def _subnet(self, role: str, zone: str, range_: IPv4Network, routes: aws.ec2.RouteTable) -> aws.ec2.Subnet:
        by_name = zone.startswith(self._cluster.spec.control_plane.region)
        name = f"{self._cluster.name}-{role}-{zone}"
        subnet = aws.ec2.Subnet(
            name,
            vpc_id=self.vpc.id,
            cidr_block=str(range_),
            availability_zone=zone if by_name else None,
            availability_zone_id=None if by_name else zone,
            tags=tags(self._cluster, role, zone),
            opts=self._own,
        )
        aws.ec2.RouteTableAssociation(name, subnet_id=subnet.id, route_table_id=routes.id, opts=self._own)
        return subnet
