"""Members of the etcds: machines, each with its own address, identity and data disks, each in its zone."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_azure_native as azure

from cluster.disks import AZURE_SKUS
from cluster.files import Disk
from cluster.quantities import GIB, whole_gib
from cluster.spec import Cluster, RoleName
from components.userdata import Payload
from etcd.members import Member, members_by_host, settings
from etcd.render import data_disk
from network.addresses import ROLES, AddressPlan, HostAddress
from stacks.azure import hosts, roles
from stacks.azure.hosts import SYSTEM_DISK_GIB, Boot
from stacks.azure.keys import Keys
from stacks.azure.tags import tags
from stacks.protection import is_protected

LOCAL = "local-nvme"
_PROVISIONED = frozenset({"PremiumV2_LRS", "UltraSSD_LRS"})
"""Kinds of disks with provisioned IOPS ("Azure managed disk types"); they get the minimum throughput."""
_MB_PER_S = 125


def lun(role: RoleName) -> int:
    """Return the number of an etcd's disk on its hosts."""
    return ROLES.index(role)


def disk_of(cluster: Cluster, role: RoleName) -> Disk:
    """Return how a host finds the data disk of an etcd, with and without Azure's names for disks (azure-vm-utils)."""
    etcd, number = settings(cluster, role), lun(role)
    if etcd.disk == LOCAL:
        local_disks = ("/dev/disk/azure/local/by-index/*", "/dev/disk/by-id/nvme-Microsoft_NVMe_Direct_Disk*")
        return data_disk(cluster, role, local_disks)
    links = (f"/dev/disk/azure/data/by-lun/{number}", f"/dev/disk/azure/scsi1/lun{number}")
    return data_disk(
        cluster, role, (*links, "/dev/disk/by-id/nvme-MSFT_NVMe_Accelerator_*"), whole_gib(etcd.disk_size) * GIB
    )


class Etcd(pulumi.ComponentResource):
    """Existing machines keep their user data and image: a change would replace the machine, and doing so to all members at
    once would lose the quorum, or the data on local disks."""

    machines: dict[str, azure.compute.VirtualMachine]
    """Host -> machine."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        group: pulumi.Input[str],
        subnet: pulumi.Output[str],
        keys: Keys,
        boots: Mapping[str, Boot],
        payloads: Mapping[str, Payload],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Etcd", "etcd", None, opts)
        self._cluster = cluster
        self._group = group
        self._subnet = subnet
        self._keys = keys
        self._kept = pulumi.ResourceOptions(parent=self, protect=is_protected())
        self.machines = {}
        by_host = members_by_host(cluster, plan)
        for role in ROLES:
            for host in plan.etcd[role]:
                if host.name not in self.machines:
                    user_data = boots[host.name].user_data(payloads[host.name], host.name)
                    own = by_host[host.name]
                    self.machines[host.name] = self._machine(role, host, own, boots[host.name], user_data)
        self.register_outputs({})

    def _disk(self, role: RoleName, member: Member) -> azure.compute.Disk:
        etcd = settings(self._cluster, role)
        kind = AZURE_SKUS[etcd.disk]
        is_provisioned = kind in _PROVISIONED
        return azure.compute.Disk(
            member.name,
            resource_group_name=self._group,
            disk_name=member.name,
            zones=[member.zone],
            sku=azure.compute.DiskSkuArgs(name=kind),
            disk_size_gb=whole_gib(etcd.disk_size),
            disk_iops_read_write=etcd.iops if is_provisioned else None,
            disk_m_bps_read_write=_MB_PER_S if is_provisioned else None,
            creation_data=azure.compute.CreationDataArgs(create_option="Empty"),
            encryption=azure.compute.EncryptionArgs(
                type="EncryptionAtRestWithCustomerKey", disk_encryption_set_id=self._keys.disks.id
            ),
            # Its bytes are accessible only through its machine.
            network_access_policy="DenyAll",
            public_network_access="Disabled",
            tags=tags(self._cluster, f"etcd-{role}"),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(parent=self, protect=is_protected()), self._keys.for_disks
            ),
        )

    def _interface(self, host: HostAddress, machine: str) -> azure.network.NetworkInterface:
        address = azure.network.NetworkInterfaceIPConfigurationArgs(
            name="own",
            primary=True,
            subnet=azure.network.SubnetArgs(id=self._subnet),
            private_ip_address=str(host.address),
            private_ip_allocation_method="Static",
        )
        return azure.network.NetworkInterface(
            host.name,
            resource_group_name=self._group,
            network_interface_name=host.name,
            ip_configurations=[address],
            enable_accelerated_networking=hosts.is_accelerated(machine),
            tags=tags(self._cluster, host.name),
            opts=self._kept,
        )

    def _machine(
        self,
        role: RoleName,
        host: HostAddress,
        own: Mapping[RoleName, Member],
        boot: Boot,
        user_data: pulumi.Output[str],
    ) -> azure.compute.VirtualMachine:
        size = settings(self._cluster, role).machine
        disks = {role_: self._disk(role_, member) for role_, member in own.items() if _is_network(self._cluster, role_)}
        ultra = any(settings(self._cluster, role_).disk == "ultra_ssd" for role_ in disks)
        interface = self._interface(host, size)
        machine = azure.compute.VirtualMachine(
            host.name,
            resource_group_name=self._group,
            vm_name=host.name,
            zones=[host.zone],
            hardware_profile=azure.compute.HardwareProfileArgs(vm_size=size),
            additional_capabilities=azure.compute.AdditionalCapabilitiesArgs(ultra_ssd_enabled=True) if ultra else None,
            identity=azure.compute.VirtualMachineIdentityArgs(
                type=azure.compute.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[boot.identity.id]
            ),
            os_profile=hosts.single_os_profile(host.name, user_data),
            network_profile=azure.compute.NetworkProfileArgs(
                network_interfaces=[
                    azure.compute.NetworkInterfaceReferenceArgs(
                        id=interface.id, primary=True, delete_option=azure.compute.DeleteOptions.DETACH
                    )
                ]
            ),
            storage_profile=self._storage(size, disks),
            security_profile=hosts.boot_security(size),
            diagnostics_profile=hosts.diagnostics(),
            tags=tags(self._cluster, host.name),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    parent=self,
                    protect=is_protected(),
                    # Two machines can't have its name, its interface and its disks at the same time.
                    delete_before_replace=True,
                    ignore_changes=["osProfile.customData", "storageProfile.imageReference"],
                    depends_on=boot.after,
                ),
                self._keys.for_disks,
            ),
        )
        roles.lock(host.name, machine, pulumi.ResourceOptions(parent=self))
        return machine

    def _storage(self, size: str, disks: Mapping[RoleName, azure.compute.Disk]) -> azure.compute.StorageProfileArgs:
        """The system disk is deleted with the machine; data disks stay."""
        encrypted = azure.compute.DiskEncryptionSetParametersArgs(id=self._keys.disks.id)
        system = azure.compute.OSDiskArgs(
            create_option="FromImage",
            caching=azure.compute.CachingTypes.READ_ONLY,
            delete_option="Delete",
            disk_size_gb=SYSTEM_DISK_GIB,
            managed_disk=azure.compute.ManagedDiskParametersArgs(
                storage_account_type=hosts.system_disk(size), disk_encryption_set=encrypted
            ),
        )
        data = [
            azure.compute.DataDiskArgs(
                lun=lun(role),
                create_option="Attach",
                caching=azure.compute.CachingTypes.NONE,
                delete_option="Detach",
                managed_disk=azure.compute.ManagedDiskParametersArgs(id=disk.id),
            )
            for role, disk in disks.items()
        ]
        return azure.compute.StorageProfileArgs(
            image_reference=hosts.image(self._cluster.spec.control_plane.image), os_disk=system, data_disks=data
        )


def _is_network(cluster: Cluster, role: RoleName) -> bool:
    return settings(cluster, role).disk != LOCAL
