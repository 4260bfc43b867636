"""VPC endpoints: access to AWS services without the internet or a NAT gateway."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from cluster.subnets import zone_subnets
from components.flows.flow import Role
from stacks.aws import policies
from stacks.aws.network import Network
from stacks.aws.rules import endpoint_of
from stacks.aws.security import SecurityGroups
from stacks.aws.tags import tags


class Endpoints(pulumi.ComponentResource):
    """S3 and Secrets Manager, inside the VPC."""

    def __init__(
        self, cluster: Cluster, network: Network, security: SecurityGroups, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__("menagerie:aws:Endpoints", f"{cluster.name}-endpoints", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        self._s3(network)
        self._secrets(network, security.of[Role.SECRET_STORE])
        self.register_outputs({})

    def _s3(self, network: Network) -> None:
        # Without a policy: registry.k8s.io redirects pulls from inside AWS to its own buckets.
        aws.ec2.VpcEndpoint(
            f"{self._cluster.name}-s3",
            vpc_id=network.vpc.id,
            service_name=self._service("s3"),
            vpc_endpoint_type="Gateway",
            route_table_ids=[network.routes.id],
            tags=tags(self._cluster, "s3"),
            opts=self._own,
        )

    def _secrets(self, network: Network, group: aws.ec2.SecurityGroup) -> None:
        account = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(parent=self)).account_id
        aws.ec2.VpcEndpoint(
            f"{self._cluster.name}-secrets",
            vpc_id=network.vpc.id,
            service_name=self._service("secretsmanager"),
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=[zone.api_servers.id for zone in network.zones.values()],
            subnet_configurations=[
                aws.ec2.VpcEndpointSubnetConfigurationArgs(
                    subnet_id=network.zones[subnets.zone].api_servers.id, ipv4=str(endpoint_of(subnets))
                )
                for subnets in zone_subnets(self._cluster.spec)
            ],
            security_group_ids=[group.id],
            policy=account.apply(self._own_secrets),
            tags=tags(self._cluster, "secrets"),
            opts=self._own,
        )

    def _service(self, name: str) -> str:
        return f"com.amazonaws.{self._cluster.spec.control_plane.region}.{name}"

    def _own_secrets(self, account: str) -> str:
        """Return a policy that permits only secrets of this account, and only to its members."""
        actions = ["secretsmanager:GetSecretValue"]
        if self._cluster.spec.cloud_workers:
            actions.append("secretsmanager:PutSecretValue")
        own = {"aws:PrincipalAccount": account, "aws:ResourceAccount": account}
        statement = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": actions,
            "Resource": "*",
            "Condition": {"StringEquals": own},
        }
        return policies.document(statement)
