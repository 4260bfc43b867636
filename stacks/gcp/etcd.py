"""Members of the etcds: machines, each with its own address, identity and data disks, each in its zone."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from cluster.files import Disk
from cluster.quantities import whole_gib
from cluster.spec import Cluster, RoleName
from components.userdata import Payload
from etcd.members import Member, members_by_host, settings
from etcd.render import data_disk
from network.addresses import ROLES, AddressPlan, HostAddress
from stacks.gcp import hosts
from stacks.gcp.hosts import SCRATCH_GB, SYSTEM_DISK_GIB
from stacks.gcp.keys import Keys
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import labels, named
from stacks.protection import is_protected

LOCAL = "local-nvme"
_PROVISIONED = frozenset({"hyperdisk-balanced", "hyperdisk-extreme", "pd-extreme"})
"""Kinds of disks with provisioned IOPS."""


def disk_of(cluster: Cluster, role: RoleName) -> Disk:
    """Return how a host finds the data disk of an etcd."""
    links = "google-local-nvme-ssd-*" if settings(cluster, role).disk == LOCAL else f"google-{_device(role)}"
    return data_disk(cluster, role, (f"/dev/disk/by-id/{links}",))


class Etcd(pulumi.ComponentResource):
    """Existing machines keep their metadata, which contains the boot program, and their image: a change would replace the
    machine, and doing so to all members at once would lose the quorum, or the data on local disks. A change of the machine
    type stops a machine, so the provider refuses it (`allow_stopping_for_update`)."""

    machines: dict[str, gcp.compute.Instance]
    """Host -> machine."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        subnet: gcp.compute.Subnetwork,
        keys: Keys,
        identities: Mapping[str, Identity],
        payloads: Mapping[str, Payload],
        after: list[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """after: what hosts need to reach the store."""
        super().__init__("menagerie:gcp:Etcd", f"{cluster.name}-etcd", None, opts)
        self._cluster = cluster
        self._subnet = subnet
        self._keys = keys
        self._after = after
        self.machines = {}
        by_host = members_by_host(cluster, plan)
        for role in ROLES:
            for host in plan.etcd[role]:
                if host.name not in self.machines:
                    identity = identities[host.name]
                    script = identity.startup_script(payloads[host.name], host.name)
                    self.machines[host.name] = self._machine(role, host, by_host[host.name], identity, script)
        self.register_outputs({})

    def _machine(
        self,
        role: RoleName,
        host: HostAddress,
        own: Mapping[RoleName, Member],
        identity: Identity,
        script: pulumi.Output[str],
    ) -> gcp.compute.Instance:
        machine = settings(self._cluster, role).machine
        data = [role_ for role_ in own if settings(self._cluster, role_).disk != LOCAL]
        attached = [
            gcp.compute.InstanceAttachedDiskArgs(source=self._disk(role_, own[role_]).id, device_name=_device(role_))
            for role_ in data
        ]
        scratch = hosts.local_disks(machine, len(own) - len(data)) if len(data) < len(own) else 0
        return gcp.compute.Instance(
            named(self._cluster, host.name),
            name=named(self._cluster, host.name),
            zone=host.zone,
            machine_type=machine,
            boot_disk=self._system_disk(machine),
            attached_disks=attached,
            scratch_disks=[gcp.compute.InstanceScratchDiskArgs(interface="NVME", size=SCRATCH_GB)] * scratch,
            network_interfaces=[self._interface(host)],
            service_account=gcp.compute.InstanceServiceAccountArgs(
                email=identity.account.email, scopes=["cloud-platform"]
            ),
            shielded_instance_config=gcp.compute.InstanceShieldedInstanceConfigArgs(
                enable_secure_boot=hosts.secure_boot(machine), enable_vtpm=True, enable_integrity_monitoring=True
            ),
            metadata=hosts.metadata(script),
            labels=labels(f"etcd-{role}"),
            deletion_protection=is_protected(),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    parent=self,
                    protect=is_protected(),
                    # Two machines can't have its name, its address and its disks at the same time.
                    delete_before_replace=True,
                    # A machine type with its own local disks has them without an explicit request.
                    ignore_changes=["metadata", "bootDisk.initializeParams.image", "scratchDisks"],
                    depends_on=[*identity.after, *self._after],
                ),
                self._keys.usable,
            ),
        )

    def _system_disk(self, machine: str) -> gcp.compute.InstanceBootDiskArgs:
        return gcp.compute.InstanceBootDiskArgs(
            auto_delete=True,
            kms_key_self_link=self._keys.key.id,
            initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                image=hosts.image(self._cluster.spec.control_plane.image, machine),
                type=hosts.system_disk(machine),
                size=SYSTEM_DISK_GIB,
            ),
        )

    def _interface(self, host: HostAddress) -> gcp.compute.InstanceNetworkInterfaceArgs:
        """Return an interface. A machine keeps its address until it is deleted. All machines of this subnetwork specify theirs,
        so nothing else can get the address meanwhile, and none is reserved."""
        return gcp.compute.InstanceNetworkInterfaceArgs(
            subnetwork=self._subnet.id, network_ip=str(host.address), nic_type="GVNIC"
        )

    def _disk(self, role: RoleName, member: Member) -> gcp.compute.Disk:
        etcd = settings(self._cluster, role)
        return gcp.compute.Disk(
            named(self._cluster, member.name),
            name=named(self._cluster, member.name, "data"),
            zone=member.zone,
            type=etcd.disk,
            size=whole_gib(etcd.disk_size),
            provisioned_iops=etcd.iops if etcd.disk in _PROVISIONED else None,
            disk_encryption_key=gcp.compute.DiskDiskEncryptionKeyArgs(kms_key_self_link=self._keys.key.id),
            labels=labels(f"etcd-{role}"),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(parent=self, protect=is_protected(), delete_before_replace=True),
                self._keys.usable,
            ),
        )


def _device(role: RoleName) -> str:
    return f"etcd-{role}"
