"""What a load balancer forwards to the API servers, and how it checks their health."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from components.control_plane.ports import API_PORT
from etcd.apiserver import probe_path
from stacks.aws.network import Network
from stacks.aws.tags import named, tags

_INTERVAL_S, _TIMEOUT_S, _CHECKS = 10, 6, 2
"""An API server's own etcd check takes up to 5 s (`etcd.apiserver.flags`)."""
_DRAIN_S = 30


@dataclass(frozen=True)
class Front:
    """One port of a load balancer, and the target group behind it. AWS permits one load balancer per target group."""

    target: aws.lb.TargetGroup
    listener: aws.lb.Listener


def front(
    cluster: Cluster,
    network: Network,
    balancer: aws.lb.LoadBalancer,
    name: str,
    port: int,
    opts: pulumi.ResourceOptions,
) -> Front:
    """Create a listener and its targets. konnectivity counts as healthy if the API server of its host is healthy."""
    target = aws.lb.TargetGroup(
        named(cluster, name, "target_group"),
        vpc_id=network.vpc.id,
        target_type="instance",
        protocol="TCP",
        port=port,
        # The API's audit log records the client.
        preserve_client_ip="true",
        # Watches never end, so clients must notice when a host is removed.
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
        tags=tags(cluster, name),
        opts=opts,
    )
    listener = aws.lb.Listener(
        f"{cluster.name}-{name}",
        load_balancer_arn=balancer.arn,
        protocol="TCP",
        port=port,
        default_actions=[aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=target.arn)],
        tags=tags(cluster, name),
        opts=opts,
    )
    return Front(target, listener)
