"""API servers: a scale set across all zones, and its load balancers.

It uses uniform orchestration: only in this mode does the load balancer's own probe decide which hosts are healthy, for
repairs and rolling upgrades. The other mode queries an extension, and hosts here run none ("Automatic instance repairs
for Azure Virtual Machine Scale Sets", "Orchestration modes for Virtual Machine Scale Sets in Azure").
"""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from components.userdata import Payload
from network.addresses import AddressPlan
from stacks.azure.hosts import SYSTEM_DISK_GIB, Boot
from stacks.azure.keys import Keys
from stacks.azure.load_balancing import PORTS, PUBLIC_PORTS, Balancer, public_address
from stacks.azure.network import zones_of_region
from stacks.azure.scale_sets import Model, identity
from stacks.azure.tags import tags
from stacks.protection import is_protected

_LEAST_BATCH_PERCENT = 5
_GRACE = "PT30M"
"""Between a change of a host and its first repair: rights of a new identity take ten minutes, then it boots."""


class ControlPlane(pulumi.ComponentResource):
    """Hosts without their own addresses, names or data: the scale set replaces unhealthy ones."""

    public_target: pulumi.Output[str] | None = None
    """What the API's name on the internet must point at, if it has one."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        group: azure.resources.ResourceGroup,
        subnet: pulumi.Output[str],
        keys: Keys,
        boot: Boot,
        payload: Payload,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:ControlPlane", "control-plane", None, opts)
        self._cluster = cluster
        self._group = group
        self._keys = keys
        plane = cluster.spec.control_plane
        self._balancers = [self._inside(plan, subnet)]
        if plane.public:
            self._balancers.append(self._public())
        model = Model(
            machine=plane.machine,
            prefix="api-server-",
            image=plane.image,
            disk_gib=SYSTEM_DISK_GIB,
            user_data=boot.user_data(payload),
            subnet=subnet,
            disks=keys.disks,
            backends=[balancer.pool for balancer in self._balancers],
            probe=self._balancers[0].probe,
        )
        self.hosts = self._hosts(model, boot, opts)
        self.register_outputs({})

    def _inside(self, plan: AddressPlan, subnet: pulumi.Output[str]) -> Balancer:
        (address,) = plan.balancers
        frontend = {
            "subnet": azure.network.SubnetArgs(id=subnet),
            "private_ip_address": str(address),
            "private_ip_allocation_method": "Static",
            "zones": zones_of_region(self._cluster),
        }
        return Balancer(self._cluster, "api", self._group, frontend, PORTS, pulumi.ResourceOptions(parent=self))

    def _public(self) -> Balancer:
        """Create the public load balancer, without konnectivity's port: no worker connects from the internet."""
        kept = pulumi.ResourceOptions(parent=self, protect=is_protected())
        address = public_address(self._cluster, self._group, kept)
        self.public_target = address.ip_address.apply(lambda ip: ip or "")
        frontend = {"public_ip_address": azure.network.PublicIPAddressArgs(id=address.id)}
        own = pulumi.ResourceOptions(parent=self)
        return Balancer(self._cluster, "api-public", self._group, frontend, PUBLIC_PORTS, own)

    def _hosts(self, model: Model, boot: Boot, opts: pulumi.ResourceOptions) -> azure.compute.VirtualMachineScaleSet:
        plane = self._cluster.spec.control_plane
        return azure.compute.VirtualMachineScaleSet(
            "api-servers",
            # A fixed name, not generated: if a response is lost, no second set of API servers is created.
            vm_scale_set_name="api-servers",
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
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    parent=self,
                    delete_before_replace=True,
                    depends_on=[*(balancer.made for balancer in self._balancers), *boot.after],
                ),
                self._keys.for_disks,
            ),
        )


def _upgrades(number: int) -> azure.compute.UpgradePolicyArgs:
    """Return a policy: create a host from the new model, and delete an old one when it is healthy; stop if it is unhealthy.

    New user data does not reach existing hosts, so hosts are replaced, which MaxSurge does ("Rolling upgrades with MaxSurge
    on Virtual Machine Scale Sets").
    """
    percent = max(_LEAST_BATCH_PERCENT, 100 // number)
    return azure.compute.UpgradePolicyArgs(
        mode=azure.compute.UpgradeMode.ROLLING,
        rolling_upgrade_policy=azure.compute.RollingUpgradePolicyArgs(
            max_surge=True,
            max_batch_instance_percent=percent,
            max_unhealthy_instance_percent=percent,
            max_unhealthy_upgraded_instance_percent=0,
            prioritize_unhealthy_instances=True,
            pause_time_between_batches="PT1M",
        ),
    )
