"""API servers: a regional group of machines, and the load balancer in front of it."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.tags import of_cluster
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from components.userdata import Payload
from etcd.apiserver import probe_path
from network.addresses import AddressPlan
from stacks.gcp import hosts
from stacks.gcp.hosts import SYSTEM_DISK_GIB
from stacks.gcp.keys import Keys
from stacks.gcp.network import Network
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import base_name, generated, labels, named

_BOOT_S = 600
"""From a machine's start to its first repair: it boots, and waits for permissions that were granted a minute ago."""
DRAIN_S = 60


class ControlPlane(pulumi.ComponentResource):
    """Hosts without their own addresses, names or data: the group replaces unhealthy ones.

    Packets pass the load balancer unchanged: API servers see their clients' addresses and reply directly.
    """

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        subnet: gcp.compute.Subnetwork,
        keys: Keys,
        identity: Identity,
        payload: Payload,
        after: list[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """after: what hosts need to reach the store."""
        super().__init__("menagerie:gcp:ControlPlane", f"{cluster.name}-control-plane", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        reserved = self._address(plan, subnet)
        # Machines of the group take any free address in the subnetwork.
        self._after = [keys.granted, *identity.after, *after, reserved]
        machine = cluster.spec.control_plane.machine
        disks = hosts.template_disks(
            machine, cluster.spec.control_plane.image, SYSTEM_DISK_GIB, keys.key, of_cluster(cluster.name)
        )
        template = hosts.template(
            generated(cluster, "api-server"),
            machine,
            disks,
            subnet,
            identity.account,
            hosts.metadata(identity.startup_script(payload)),
            labels("api-server"),
            pulumi.ResourceOptions(parent=self, depends_on=self._after),
        )
        self.hosts = self._group(template)
        self.ready = self._check("ready", every_s=5, failures=2)
        self._balancer(reserved, network, subnet)
        self.register_outputs({})

    def _group(self, template: gcp.compute.RegionInstanceTemplate) -> gcp.compute.RegionInstanceGroupManager:
        plane = self._cluster.spec.control_plane
        zones = list(map(str, plane.zones))
        # Five minutes: while etcd main has no leader, no API server is ready, and replacements would not be either.
        alive = self._check("alive", every_s=30, failures=10)
        # A change of zones needs a new group, which serves before the old one is deleted.
        name = named(self._cluster, "api-servers", "".join(zone.rpartition("-")[2] for zone in zones))
        return gcp.compute.RegionInstanceGroupManager(
            named(self._cluster, "api-servers"),
            name=name,
            base_instance_name=base_name(self._cluster, "api"),
            distribution_policy_zones=zones,
            distribution_policy_target_shape="EVEN",
            target_size=plane.api_servers,
            versions=[gcp.compute.RegionInstanceGroupManagerVersionArgs(instance_template=template.self_link)],
            auto_healing_policies=gcp.compute.RegionInstanceGroupManagerAutoHealingPoliciesArgs(
                health_check=alive.id, initial_delay_sec=_BOOT_S
            ),
            update_policy=gcp.compute.RegionInstanceGroupManagerUpdatePolicyArgs(
                type="PROACTIVE",
                minimal_action="REPLACE",
                most_disruptive_allowed_action="REPLACE",
                instance_redistribution_type="PROACTIVE",
                # The minimum that Google accepts except zero ("About regional MIGs").
                max_surge_fixed=len(zones),
                max_unavailable_fixed=0,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=self._after),
        )

    def _check(self, name: str, every_s: int, failures: int) -> gcp.compute.RegionHealthCheck:
        """Create a health check. Google connects by HTTPS and does not verify certificates."""
        return gcp.compute.RegionHealthCheck(
            generated(self._cluster, "api", name),
            check_interval_sec=every_s,
            timeout_sec=5,
            healthy_threshold=2,
            unhealthy_threshold=failures,
            https_health_check=gcp.compute.RegionHealthCheckHttpsHealthCheckArgs(
                port=API_PORT, request_path=probe_path()
            ),
            log_config=gcp.compute.RegionHealthCheckLogConfigArgs(enable=True),
            opts=self._own,
        )

    def _address(self, plan: AddressPlan, subnet: gcp.compute.Subnetwork) -> gcp.compute.Address:
        (address,) = plan.balancers
        return gcp.compute.Address(
            named(self._cluster, "api"),
            name=named(self._cluster, "api"),
            address_type="INTERNAL",
            subnetwork=subnet.id,
            address=str(address),
            labels=labels("load-balancer"),
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )

    def _balancer(self, reserved: gcp.compute.Address, network: Network, subnet: gcp.compute.Subnetwork) -> None:
        backend = gcp.compute.RegionBackendService(
            generated(self._cluster, "api"),
            load_balancing_scheme="INTERNAL",
            protocol="TCP",
            health_checks=self.ready.id,
            backends=[
                gcp.compute.RegionBackendServiceBackendArgs(
                    group=self.hosts.instance_group, balancing_mode="CONNECTION"
                )
            ],
            connection_draining_timeout_sec=DRAIN_S,
            log_config=gcp.compute.RegionBackendServiceLogConfigArgs(enable=True, sample_rate=0.1),
            opts=self._own,
        )
        gcp.compute.ForwardingRule(
            generated(self._cluster, "api"),
            load_balancing_scheme="INTERNAL",
            ip_protocol="TCP",
            ip_address=reserved.address,
            ports=[str(API_PORT), str(KONNECTIVITY_PORT)],
            backend_service=backend.id,
            network=network.network.id,
            subnetwork=subnet.id,
            labels=labels("load-balancer"),
            # Two rules cannot have the same address.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
