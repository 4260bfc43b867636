"""The model of a scale set's machines, shared by API servers and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_azure_native as azure

from stacks.azure import hosts
from stacks.azure.hosts import Boot


@dataclass(frozen=True)
class Model:
    """The properties of a scale set's machines. prefix: of their names. disk_gib: of the system disk."""

    machine: str
    prefix: str
    image: str | None
    disk_gib: int
    user_data: pulumi.Input[str]
    subnet: pulumi.Output[str]
    disks: azure.compute.DiskEncryptionSet
    backends: Sequence[pulumi.Output[str]] = ()
    """IDs of load balancers' pools that they join."""
    probe: pulumi.Output[str] | None = None
    """ID of the load balancer's probe that decides which of them are healthy."""

    def profile(self, **more: object) -> azure.compute.VirtualMachineScaleSetVMProfileArgs:
        """Return the profile. more: properties that only some have, such as a priority."""
        profile = azure.compute.VirtualMachineScaleSetVMProfileArgs(
            os_profile=hosts.group_os_profile(self.prefix, self.user_data),
            storage_profile=self._storage(),
            network_profile=self._network(),
            security_profile=hosts.boot_security(self.machine),
            diagnostics_profile=hosts.diagnostics(),
        )
        for name, value in more.items():
            setattr(profile, name, value)
        return profile

    def _storage(self) -> azure.compute.VirtualMachineScaleSetStorageProfileArgs:
        managed = azure.compute.VirtualMachineScaleSetManagedDiskParametersArgs(
            storage_account_type=hosts.system_disk(self.machine),
            disk_encryption_set=azure.compute.DiskEncryptionSetParametersArgs(id=self.disks.id),
        )
        return azure.compute.VirtualMachineScaleSetStorageProfileArgs(
            image_reference=hosts.image(self.image),
            os_disk=azure.compute.VirtualMachineScaleSetOSDiskArgs(
                create_option="FromImage",
                caching=azure.compute.CachingTypes.READ_ONLY,
                disk_size_gb=self.disk_gib,
                managed_disk=managed,
            ),
        )

    def _network(self) -> azure.compute.VirtualMachineScaleSetNetworkProfileArgs:
        pools = [azure.compute.SubResourceArgs(id=pool) for pool in self.backends]
        address = azure.compute.VirtualMachineScaleSetIPConfigurationArgs(
            name="own",
            primary=True,
            subnet=azure.compute.ApiEntityReferenceArgs(id=self.subnet),
            load_balancer_backend_address_pools=pools or None,
        )
        interface = azure.compute.VirtualMachineScaleSetNetworkConfigurationArgs(
            name="own",
            primary=True,
            enable_accelerated_networking=hosts.is_accelerated(self.machine),
            ip_configurations=[address],
        )
        return azure.compute.VirtualMachineScaleSetNetworkProfileArgs(
            network_interface_configurations=[interface],
            health_probe=azure.compute.ApiEntityReferenceArgs(id=self.probe) if self.probe is not None else None,
        )


def identity(boot: Boot) -> azure.compute.VirtualMachineScaleSetIdentityArgs:
    """Return the reader's identity, and no other."""
    return azure.compute.VirtualMachineScaleSetIdentityArgs(
        type=azure.compute.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[boot.identity.id]
    )
