"""API servers in a group that replaces unhealthy hosts, and the load balancers in front of them."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from components.flows.flow import Role
from network.addresses import AddressPlan
from stacks.aws.launch import SYSTEM_DISK_GIB, Launch, image_of, template
from stacks.aws.load_balancing import Front, front
from stacks.aws.network import Network, Zone
from stacks.aws.security import SecurityGroups
from stacks.aws.storage import Storage
from stacks.aws.tags import group_tags, named, tags, whole_tags
from stacks.cloud_store import API_SERVERS
from stacks.protection import is_protected

_PORTS = {"api": API_PORT, "konnectivity": KONNECTIVITY_PORT}
_PUBLIC_PORTS = {"public": API_PORT}
_GRACE_S = 600
"""From launch until a host must pass health checks: it downloads its programs first."""


class ControlPlane(pulumi.ComponentResource):
    """The load balancer has the plan's address in each zone. The group itself rolls out a new template: it adds a host, then
    removes one."""

    balancer: aws.lb.LoadBalancer
    public: pulumi.Output[str] | None
    """Where a public endpoint's name must point: its addresses, one per zone."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        security: SecurityGroups,
        storage: Storage,
        profile: aws.iam.InstanceProfile,
        user_data: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """opts: depends on what hosts fetch at boot."""
        super().__init__("menagerie:aws:ControlPlane", f"{cluster.name}-control-plane", None, opts)
        self._cluster = cluster
        self._network = network
        self._own = pulumi.ResourceOptions(parent=self)
        self.balancer = self._inside(plan, security.of[Role.LOAD_BALANCER])
        fronts = [front(cluster, network, self.balancer, name, port, self._own) for name, port in _PORTS.items()]
        self.public = None
        if cluster.spec.control_plane.public:
            outside, self.public = self._outside(security.of[Role.PUBLIC_BALANCER])
            fronts += [front(cluster, network, outside, name, port, self._own) for name, port in _PUBLIC_PORTS.items()]
        template_ = self._template(storage, profile, user_data, security.of[Role.API_SERVER])
        self._group(template_, fronts)
        self.register_outputs({})

    def _inside(self, plan: AddressPlan, group: aws.ec2.SecurityGroup) -> aws.lb.LoadBalancer:
        mappings = [
            aws.lb.LoadBalancerSubnetMappingArgs(subnet_id=zone.api_servers.id, private_ipv4_address=str(address))
            for zone, address in zip(self._network.zones.values(), plan.balancers, strict=True)
        ]
        return self._balancer("api", "load-balancer", True, mappings, group)

    def _outside(self, group: aws.ec2.SecurityGroup) -> tuple[aws.lb.LoadBalancer, pulumi.Output[str]]:
        """Return the only part of the cluster that accepts requests from the internet, and its addresses as one text."""
        addresses = {name: self._address(name) for name in self._network.zones}
        mappings = [
            aws.lb.LoadBalancerSubnetMappingArgs(subnet_id=public_subnet(zone).id, allocation_id=addresses[name].id)
            for name, zone in self._network.zones.items()
        ]
        balancer = self._balancer("public", "public-load-balancer", False, mappings, group)
        return balancer, pulumi.Output.all(*(address.public_ip for address in addresses.values())).apply(", ".join)

    def _address(self, zone: str) -> aws.ec2.Eip:
        tagged = tags(self._cluster, "public-load-balancer", zone)
        return aws.ec2.Eip(f"{self._cluster.name}-public-{zone}", domain="vpc", tags=tagged, opts=self._own)

    def _balancer(
        self,
        name: str,
        role: str,
        internal: bool,
        mappings: list[aws.lb.LoadBalancerSubnetMappingArgs],
        group: aws.ec2.SecurityGroup,
    ) -> aws.lb.LoadBalancer:
        return aws.lb.LoadBalancer(
            named(self._cluster, name, "load_balancer"),
            load_balancer_type="network",
            internal=internal,
            subnet_mappings=mappings,
            security_groups=[group.id],
            # A zone may have no healthy API server.
            enable_cross_zone_load_balancing=True,
            enable_deletion_protection=is_protected(),
            tags=tags(self._cluster, role),
            opts=self._own,
        )

    def _template(
        self, storage: Storage, profile: aws.iam.InstanceProfile, user_data: str, group: aws.ec2.SecurityGroup
    ) -> aws.ec2.LaunchTemplate:
        plane = self._cluster.spec.control_plane
        image, root = image_of(plane.image, pulumi.InvokeOutputOptions(parent=self))
        launch = Launch(API_SERVERS, plane.machine, image, root, SYSTEM_DISK_GIB, user_data, profile)
        name = named(self._cluster, API_SERVERS, "launch_template")
        return template(name, self._cluster, launch, storage, self._own, vpc_security_group_ids=[group.id])

    def _group(self, template_: aws.ec2.LaunchTemplate, fronts: list[Front]) -> None:
        count = self._cluster.spec.control_plane.api_servers
        most = 100 + -(-100 // count)
        aws.autoscaling.Group(
            named(self._cluster, API_SERVERS, "launch_template"),
            min_size=count,
            max_size=count,
            vpc_zone_identifiers=[zone.api_servers.id for zone in self._network.zones.values()],
            launch_template=aws.autoscaling.GroupLaunchTemplateArgs(
                id=template_.id, version=template_.latest_version.apply(str)
            ),
            target_group_arns=[front_.target.arn for front_ in fronts],
            health_check_type="ELB",
            health_check_grace_period=_GRACE_S,
            default_instance_warmup=_GRACE_S // 2,
            instance_refresh=aws.autoscaling.GroupInstanceRefreshArgs(
                strategy="Rolling",
                preferences=aws.autoscaling.GroupInstanceRefreshPreferencesArgs(
                    min_healthy_percentage=100, max_healthy_percentage=most
                ),
            ),
            instance_maintenance_policy=aws.autoscaling.GroupInstanceMaintenancePolicyArgs(
                min_healthy_percentage=100, max_healthy_percentage=most
            ),
            tags=group_tags(whole_tags(self._cluster, API_SERVERS)),
            # A target group without a load balancer has no health status, and the group would replace its hosts.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[front_.listener for front_ in fronts]),
        )


def public_subnet(zone: Zone) -> aws.ec2.Subnet:
    """Return the public subnet of a zone in a cluster with a public endpoint."""
    assert zone.public is not None
    return zone.public
