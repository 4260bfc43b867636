"""Workers in the region: a scale set for each pool; after creation the autoscaler sets its size."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_azure_native as azure

from cluster.pools import Placement, Pool
from cluster.quantities import whole_gib
from cluster.spec import Cluster
from components.userdata import Payload
from stacks.azure.hosts import Boot
from stacks.azure.keys import Keys
from stacks.azure.scale_sets import Model, identity
from stacks.azure.tags import autoscaler_tags, host_prefix, scale_set_name, tags

_FAULT_DOMAINS = 5
""""Choose the right number of fault domains": in zones, 1 means as many as there are, and 5 means five or no machine."""

# Azure refuses changes of these; workers keep no data, so the scale set is replaced.
_FIXED = [
    "platformFaultDomainCount",
    "proximityPlacementGroup",
    "singlePlacementGroup",
    "virtualMachineProfile.osProfile.computerNamePrefix",
    "virtualMachineProfile.priority",
    "zones",
]


class Workers(pulumi.ComponentResource):
    """Running machines stay when the model changes: people's jobs run on them."""

    pools: dict[str, azure.compute.VirtualMachineScaleSet]

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        subnet: pulumi.Output[str],
        keys: Keys,
        boots: Mapping[str, Boot],
        payloads: Mapping[str, Payload],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """boots, payloads: by pool in the region."""
        super().__init__("menagerie:azure:Workers", "workers", None, opts)
        self._cluster = cluster
        self._group = group
        self._keys = keys
        self._boots = boots
        self.pools = {}
        for name, payload in payloads.items():
            pool = cluster.spec.pools[name]
            model = Model(
                machine=str(pool.machine),
                prefix=host_prefix(name),
                image=pool.image,
                disk_gib=whole_gib(pool.disk_size),
                user_data=boots[name].user_data(payload),
                subnet=subnet,
                disks=keys.disks,
            )
            self.pools[name] = self._pool(name, pool, model)
        self.register_outputs({})

    def _pool(self, name: str, pool: Pool, model: Model) -> azure.compute.VirtualMachineScaleSet:
        near = self._proximity(name, pool) if pool.placement is Placement.COMPACT else None
        return azure.compute.VirtualMachineScaleSet(
            scale_set_name(name),
            # A fixed name, not generated: if a response is lost, no second set of machines joins the cluster.
            vm_scale_set_name=scale_set_name(name),
            resource_group_name=self._group,
            # Flexible orchestration has no InfiniBand ("Orchestration modes for Virtual Machine Scale Sets in Azure").
            orchestration_mode="Uniform",
            sku=azure.compute.SkuArgs(name=model.machine, tier="Standard", capacity=pool.min),
            zones=list(self._cluster.spec.zones_of(pool)),
            zone_balance=False,
            platform_fault_domain_count=_FAULT_DOMAINS if pool.placement is Placement.SPREAD else 1,
            # Machines of one InfiniBand network are in one placement group.
            single_placement_group=pool.rdma,
            proximity_placement_group=azure.compute.SubResourceArgs(id=near.id) if near else None,
            overprovision=False,
            upgrade_policy=azure.compute.UpgradePolicyArgs(mode=azure.compute.UpgradeMode.MANUAL),
            identity=identity(self._boots[name]),
            virtual_machine_profile=model.profile(**_kind(pool)),
            tags={**tags(self._cluster, f"pool-{name}"), **autoscaler_tags(self._cluster, name, pool)},
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    parent=self,
                    ignore_changes=["sku.capacity"],
                    replace_on_changes=_FIXED,
                    delete_before_replace=True,
                    depends_on=list(self._boots[name].after),
                ),
                self._keys.for_disks,
            ),
        )

    def _proximity(self, name: str, pool: Pool) -> azure.compute.ProximityPlacementGroup:
        return azure.compute.ProximityPlacementGroup(
            scale_set_name(name),
            resource_group_name=self._group,
            proximity_placement_group_type="Standard",
            zones=list(self._cluster.spec.zones_of(pool)),
            intent=azure.compute.ProximityPlacementGroupPropertiesIntentArgs(vm_sizes=[str(pool.machine)]),
            tags=tags(self._cluster, f"pool-{name}"),
            opts=pulumi.ResourceOptions(parent=self),
        )


def _kind(pool: Pool) -> dict[str, object]:
    """Return how machines are bought: regular, spot capacity that Azure takes back at any time, or reserved capacity."""
    if pool.spot:
        return {
            "priority": "Spot",
            "eviction_policy": "Delete",
            # Evicted only for lack of capacity, never because of the price.
            "billing_profile": azure.compute.BillingProfileArgs(max_price=-1),
        }
    if pool.reservation:
        group = azure.compute.SubResourceArgs(id=pool.reservation)
        return {"capacity_reservation": azure.compute.CapacityReservationProfileArgs(capacity_reservation_group=group)}
    return {}
