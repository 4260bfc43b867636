"""Public access to the API, from the internet, if the spec requests it."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from components.control_plane.ports import API_PORT
from stacks.gcp.control_plane import DRAIN_S, ControlPlane
from stacks.gcp.tags import generated, labels, named


class PublicEndpoint(pulumi.ComponentResource):
    """An external passthrough load balancer in front of the same machines, which have no public address themselves.

    The firewall admits the spec's public operators at the machines, because packets keep their senders' addresses. The load
    balancer is regional, and has only the API's port.
    """

    def __init__(self, cluster: Cluster, plane: ControlPlane, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:PublicEndpoint", f"{cluster.name}-public-endpoint", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        reserved = gcp.compute.Address(
            named(cluster, "public"),
            name=named(cluster, "public"),
            address_type="EXTERNAL",
            labels=labels("public-load-balancer"),
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        backend = gcp.compute.RegionBackendService(
            generated(cluster, "public"),
            load_balancing_scheme="EXTERNAL",
            protocol="TCP",
            health_checks=plane.ready.id,
            backends=[
                gcp.compute.RegionBackendServiceBackendArgs(
                    group=plane.hosts.instance_group, balancing_mode="CONNECTION"
                )
            ],
            connection_draining_timeout_sec=DRAIN_S,
            log_config=gcp.compute.RegionBackendServiceLogConfigArgs(enable=True, sample_rate=0.1),
            opts=own,
        )
        gcp.compute.ForwardingRule(
            generated(cluster, "public"),
            load_balancing_scheme="EXTERNAL",
            ip_protocol="TCP",
            ip_address=reserved.address,
            ports=[str(API_PORT)],
            backend_service=backend.id,
            labels=labels("public-load-balancer"),
            # Two rules cannot have the same address.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.address: pulumi.Output[str] = reserved.address
        """What the public name must point at."""
        self.register_outputs({})
