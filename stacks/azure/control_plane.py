"""API servers: a scale set over all zones, and the load balancer in front of it.

Uniform orchestration: only there does the load balancer's own probe say which hosts are well, for repairs and for
rolling upgrades; the other mode asks an extension, and hosts here run none ("Automatic instance repairs for Azure
Virtual Machine Scale Sets", "Orchestration modes for Virtual Machine Scale Sets in Azure").
"""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.apiserver import probe_path
from network.addresses import AddressPlan
from stacks.azure.hosts import SYSTEM_DISK_GIB, Boot
from stacks.azure.network import zones_of_region
from stacks.azure.scale_sets import Model, identity
from stacks.azure.tags import tags
from userdata import Payload

_BALANCER = "api"
_PROBE, _FRONTEND, _POOL = "ready", "api", "api-servers"
_PROBE_EVERY_S = 5
_FAILURES = 2
_IDLE_MIN = 30
"""Watches and konnectivity's tunnels may be silent for long; 4 to 100 minutes are possible."""
_LEAST_BATCH_PERCENT = 5
_GRACE = "PT30M"
"""Between a change of a host and its first repair: rights of a new identity take ten minutes, then it boots."""


class ControlPlane(pulumi.ComponentResource):
    """Hosts without addresses, names or data of their own: the scale set replaces one that does not serve."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        group: azure.resources.ResourceGroup,
        subnet: azure.network.Subnet,
        disks: azure.compute.DiskEncryptionSet,
        boot: Boot,
        payload: Payload,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:ControlPlane", "control-plane", None, opts)
        self._cluster = cluster
        self._group = group
        self._subnet = subnet
        self.balancer = self._balancer(plan)
        plane = cluster.spec.control_plane
        model = Model(
            machine=plane.machine,
            prefix="api-server-",
            image=plane.image,
            disk_gib=SYSTEM_DISK_GIB,
            user_data=boot.user_data(payload),
            subnet=subnet,
            disks=disks,
            backends=self._part("backendAddressPools", _POOL),
            probe=self._part("probes", _PROBE),
        )
        self.hosts = self._hosts(model, boot, opts)
        self.register_outputs({})

    def _part(self, kind: str, name: str) -> pulumi.Output[str]:
        """The id of a part of the load balancer, which its own rules must name, too."""
        return pulumi.Output.format(
            "{0}/providers/Microsoft.Network/loadBalancers/{1}/{2}/{3}", self._group.id, _BALANCER, kind, name
        )

    def _balancer(self, plan: AddressPlan) -> azure.network.LoadBalancer:
        (address,) = plan.balancers
        frontend = azure.network.FrontendIPConfigurationArgs(
            name=_FRONTEND,
            subnet=azure.network.SubnetArgs(id=self._subnet.id),
            private_ip_address=str(address),
            private_ip_allocation_method="Static",
            zones=zones_of_region(self._cluster),
        )
        probe = azure.network.ProbeArgs(
            name=_PROBE,
            protocol="Https",
            port=API_PORT,
            request_path=probe_path(),
            interval_in_seconds=_PROBE_EVERY_S,
            probe_threshold=_FAILURES,
        )
        return azure.network.LoadBalancer(
            _BALANCER,
            load_balancer_name=_BALANCER,
            resource_group_name=self._group.name,
            sku=azure.network.LoadBalancerSkuArgs(name="Standard", tier="Regional"),
            frontend_ip_configurations=[frontend],
            backend_address_pools=[azure.network.BackendAddressPoolArgs(name=_POOL)],
            probes=[probe],
            load_balancing_rules=[self._rule("api", API_PORT), self._rule("konnectivity", KONNECTIVITY_PORT)],
            tags=tags(self._cluster, "api"),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _rule(self, name: str, port: int) -> azure.network.LoadBalancingRuleArgs:
        return azure.network.LoadBalancingRuleArgs(
            name=name,
            protocol="Tcp",
            frontend_port=port,
            backend_port=port,
            frontend_ip_configuration=azure.network.SubResourceArgs(
                id=self._part("frontendIPConfigurations", _FRONTEND)
            ),
            backend_address_pool=azure.network.SubResourceArgs(id=self._part("backendAddressPools", _POOL)),
            probe=azure.network.SubResourceArgs(id=self._part("probes", _PROBE)),
            idle_timeout_in_minutes=_IDLE_MIN,
            enable_tcp_reset=True,
            disable_outbound_snat=True,
        )

    def _hosts(self, model: Model, boot: Boot, opts: pulumi.ResourceOptions) -> azure.compute.VirtualMachineScaleSet:
        plane = self._cluster.spec.control_plane
        return azure.compute.VirtualMachineScaleSet(
            "api-servers",
            resource_group_name=self._group.name,
            orchestration_mode="Uniform",
            sku=azure.compute.SkuArgs(name=plane.machine, tier="Standard", capacity=plane.api_servers),
            zones=list(map(str, plane.zones)),
            zone_balance=False,
            platform_fault_domain_count=1,
            single_placement_group=False,
            overprovision=False,
            upgrade_policy=_upgrades(plane.api_servers),
            automatic_repairs_policy=azure.compute.AutomaticRepairsPolicyArgs(
                enabled=True, grace_period=_GRACE, repair_action="Replace"
            ),
            identity=identity(boot),
            virtual_machine_profile=model.profile(),
            tags=tags(self._cluster, "api-servers"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.balancer, *boot.after]),
        )


def _upgrades(number: int) -> azure.compute.UpgradePolicyArgs:
    """A new host from the new model, and when it is well an old one goes; a new one that is not well ends it.

    User data reaches no host that is there already, so hosts are made anew, which MaxSurge does ("Rolling upgrades
    with MaxSurge on Virtual Machine Scale Sets").
    """
    one = max(_LEAST_BATCH_PERCENT, 100 // number)
    return azure.compute.UpgradePolicyArgs(
        mode=azure.compute.UpgradeMode.ROLLING,
        rolling_upgrade_policy=azure.compute.RollingUpgradePolicyArgs(
            max_surge=True,
            max_batch_instance_percent=one,
            max_unhealthy_instance_percent=one,
            max_unhealthy_upgraded_instance_percent=0,
            prioritize_unhealthy_instances=True,
            pause_time_between_batches="PT1M",
        ),
    )
