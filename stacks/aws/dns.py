"""The cluster's private DNS zone, with the API's name."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from network.addresses import AddressPlan
from stacks.aws.control_plane import ControlPlane
from stacks.aws.network import Network
from stacks.aws.tags import tags


class Dns(pulumi.ComponentResource):
    """DNS answers omit zones without a healthy API server."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        control_plane: ControlPlane,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:Dns", f"{cluster.name}-dns", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        zone = aws.route53.Zone(
            f"{cluster.name}-zone",
            name=str(plan.zone),
            comment=f"{cluster.name}: inside its VPC",
            vpcs=[
                aws.route53.ZoneVpcArgs(vpc_id=network.vpc.id, vpc_region=cluster.spec.control_plane.region),
            ],
            tags=tags(cluster, "zone"),
            opts=own,
        )
        balancer = control_plane.balancer
        aws.route53.Record(
            f"{cluster.name}-api",
            zone_id=zone.zone_id,
            name=plan.endpoint,
            type="A",
            aliases=[
                aws.route53.RecordAliasArgs(
                    name=balancer.dns_name, zone_id=balancer.zone_id, evaluate_target_health=True
                )
            ],
            opts=own,
        )
        self.register_outputs({})
