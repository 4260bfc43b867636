"""API servers in a group that mends itself, and the load balancer in front of them."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.apiserver import probe_path
from flows.flow import Role
from network.addresses import AddressPlan
from stacks.aws.launch import SYSTEM_DISK_GIB, Launch, image_of, template
from stacks.aws.network import Network
from stacks.aws.security import SecurityGroups
from stacks.aws.storage import Storage
from stacks.aws.tags import group_tags, named, tags, whole_tags
from stacks.payloads import API_SERVERS
from stacks.protection import is_protected

_PORTS = {"api": API_PORT, "konnectivity": KONNECTIVITY_PORT}
_INTERVAL_S, _TIMEOUT_S, _CHECKS = 10, 6, 2
"""An API server's own check of an etcd takes up to 5 s (`etcd.apiserver.flags`)."""
_GRACE_S = 600
"""From launch until a host must answer: it downloads its programs first."""
_DRAIN_S = 30


class ControlPlane(pulumi.ComponentResource):
    """The load balancer has the plan's address in each zone. A new template is rolled by the group itself: first one
    host more, then one less."""

    balancer: aws.lb.LoadBalancer

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
        self.balancer = self._balancer(plan, security.of[Role.LOAD_BALANCER])
        targets = {name: self._target(name, port) for name, port in _PORTS.items()}
        listeners = [self._listener(name, _PORTS[name], target) for name, target in targets.items()]
        made = self._template(storage, profile, user_data, security.of[Role.API_SERVER])
        self._group(made, list(targets.values()), listeners)
        self.register_outputs({})

    def _balancer(self, plan: AddressPlan, group: aws.ec2.SecurityGroup) -> aws.lb.LoadBalancer:
        mappings = [
            aws.lb.LoadBalancerSubnetMappingArgs(subnet_id=zone.api_servers.id, private_ipv4_address=str(address))
            for zone, address in zip(self._network.zones.values(), plan.balancers, strict=True)
        ]
        return aws.lb.LoadBalancer(
            named(self._cluster, "api", "load_balancer"),
            load_balancer_type="network",
            internal=True,
            subnet_mappings=mappings,
            security_groups=[group.id],
            # A zone may have no API server that is well.
            enable_cross_zone_load_balancing=True,
            enable_deletion_protection=is_protected(),
            tags=tags(self._cluster, "load-balancer"),
            opts=self._own,
        )

    def _target(self, name: str, port: int) -> aws.lb.TargetGroup:
        """konnectivity's listener is as well as the API server of its host."""
        return aws.lb.TargetGroup(
            named(self._cluster, name, "target_group"),
            vpc_id=self._network.vpc.id,
            target_type="instance",
            protocol="TCP",
            port=port,
            # The API's audit log tells who asked.
            preserve_client_ip="true",
            # Watches last for ever, and a host that goes must not take them along in silence.
            deregistration_delay=_DRAIN_S,
            connection_termination=True,
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="HTTPS",
                port=str(API_PORT),
                path=probe_path(),
                matcher="200",
                interval=_INTERVAL_S,
                timeout=_TIMEOUT_S,
                healthy_threshold=_CHECKS,
                unhealthy_threshold=_CHECKS,
            ),
            tags=tags(self._cluster, name),
            opts=self._own,
        )

    def _listener(self, name: str, port: int, target: aws.lb.TargetGroup) -> aws.lb.Listener:
        return aws.lb.Listener(
            f"{self._cluster.name}-{name}",
            load_balancer_arn=self.balancer.arn,
            protocol="TCP",
            port=port,
            default_actions=[aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=target.arn)],
            tags=tags(self._cluster, name),
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

    def _group(
        self, made: aws.ec2.LaunchTemplate, targets: list[aws.lb.TargetGroup], listeners: list[aws.lb.Listener]
    ) -> None:
        count = self._cluster.spec.control_plane.api_servers
        most = 100 + -(-100 // count)
        aws.autoscaling.Group(
            named(self._cluster, API_SERVERS, "launch_template"),
            min_size=count,
            max_size=count,
            vpc_zone_identifiers=[zone.api_servers.id for zone in self._network.zones.values()],
            launch_template=aws.autoscaling.GroupLaunchTemplateArgs(id=made.id, version=made.latest_version.apply(str)),
            target_group_arns=[target.arn for target in targets],
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
            # A target group without a load balancer has no health, and its hosts would be replaced for it.
            opts=pulumi.ResourceOptions(parent=self, depends_on=listeners),
        )
