"""Members of the etcds: machines, each with its own address, identity and data disks, each in its zone."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from cluster.files import Disk
from cluster.quantities import whole_gib
from cluster.spec import Cluster, EtcdHosts, RoleName
from components.flows.flow import Role
from etcd.members import Member, members, members_by_host, settings
from etcd.render import data_disk
from network.addresses import ROLES, AddressPlan, HostAddress
from stacks.aws.launch import SYSTEM_DISK_GIB, image_id, metadata
from stacks.aws.network import Network
from stacks.aws.security import SecurityGroups
from stacks.aws.storage import Storage
from stacks.aws.tags import tags
from stacks.protection import is_protected

LOCAL = "local-nvme"
_PROVISIONED = frozenset({"gp3", "io1", "io2"})
"""Volume types with provisioned IOPS."""
_DEVICES: Mapping[RoleName, str] = {"main": "/dev/sdf", "events": "/dev/sdg"}


def disk_of(cluster: Cluster, role: RoleName) -> Disk:
    """Return how a host finds the data disk of an etcd, with and without the links of amazon-ec2-utils."""
    etcd = settings(cluster, role)
    if etcd.disk == LOCAL:
        return data_disk(cluster, role, ("/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*",))
    links = (_DEVICES[role], "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol*")
    return data_disk(cluster, role, links, etcd.disk_size)


class Etcd(pulumi.ComponentResource):
    """Existing machines keep their type, image and user data: a change of one would stop or replace the machine, and doing
    so to all members at once would lose the quorum, or the data on local disks."""

    machines: dict[str, aws.ec2.Instance]
    """Host -> machine."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        security: SecurityGroups,
        storage: Storage,
        profiles: Mapping[str, aws.iam.InstanceProfile],
        user_data: Mapping[str, str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """profiles, user_data: by host. opts: depends on what hosts fetch at boot."""
        super().__init__("menagerie:aws:Etcd", f"{cluster.name}-etcd", None, opts)
        self._cluster = cluster
        self._by_host = members_by_host(cluster, plan)
        self._network = network
        self._security = security
        self._storage = storage
        self._own = pulumi.ResourceOptions(parent=self)
        self._image = image_id(cluster.spec.control_plane.image, pulumi.InvokeOutputOptions(parent=self))
        hosts = dict.fromkeys(host for role in ROLES for host in plan.etcd[role])
        self.machines = {host.name: self._machine(host, profiles[host.name], user_data[host.name]) for host in hosts}
        for role in ROLES:
            if settings(cluster, role).disk != LOCAL:
                for member in members(cluster, role, plan):
                    self._disk(role, member)
        self.register_outputs({})

    def _machine(self, host: HostAddress, profile: aws.iam.InstanceProfile, user_data: str) -> aws.ec2.Instance:
        first, *_ = held = tuple(self._by_host[host.name])
        is_local = any(settings(self._cluster, role).disk == LOCAL for role in held)
        tagged = tags(self._cluster, f"etcd-{first}", host.name)
        return aws.ec2.Instance(
            f"{self._cluster.name}-{host.name}",
            ami=self._image,
            instance_type=settings(self._cluster, first).machine,
            # Nothing else has an address in this subnet, so nothing takes it while the machine is replaced.
            subnet_id=self._network.zones[host.zone].etcd.id,
            private_ip=str(host.address),
            vpc_security_group_ids=[self._group(first).id],
            iam_instance_profile=profile.name,
            user_data=user_data,
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(**metadata()),
            root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
                volume_type="gp3",
                volume_size=system_disk_gib(self._cluster, held),
                encrypted=True,
                kms_key_id=self._storage.key.arn,
                tags=tagged,
            ),
            disable_api_termination=is_protected(),
            # A stop erases local disks.
            disable_api_stop=is_local and is_protected(),
            tags=tagged,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=is_protected(),
                ignore_changes=["ami", "instanceType", "userData"],
                # Two machines can't have its address at the same time.
                delete_before_replace=True,
            ),
        )

    def _group(self, role: RoleName) -> aws.ec2.SecurityGroup:
        dedicated = self._cluster.spec.etcd.events.hosts is EtcdHosts.DEDICATED
        return self._security.of[Role.ETCD_EVENTS if role == "events" and dedicated else Role.ETCD_MAIN]

    def _disk(self, role: RoleName, member: Member) -> None:
        """Create a member's disk. If it is deleted in spite of its protection, a snapshot remains."""
        name, etcd = f"{self._cluster.name}-{member.name}", settings(self._cluster, role)
        volume = aws.ebs.Volume(
            name,
            # From the subnet: the spec may have the zone's ID.
            availability_zone=self._network.zones[member.zone].etcd.availability_zone,
            type=etcd.disk,
            size=whole_gib(etcd.disk_size),
            iops=etcd.iops if etcd.disk in _PROVISIONED else None,
            encrypted=True,
            kms_key_id=self._storage.key.arn,
            final_snapshot=True,
            tags=tags(self._cluster, f"etcd-{role}", member.name),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )
        aws.ec2.VolumeAttachment(
            name,
            volume_id=volume.id,
            instance_id=self.machines[member.host].id,
            device_name=_DEVICES[role],
            stop_instance_before_detaching=True,
            # Deleting it stops the machine.
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected(), delete_before_replace=True),
        )


def system_disk_gib(cluster: Cluster, held: tuple[RoleName, ...]) -> int:
    """Return the size of a system disk: it holds a backup as a file before the upload, and a drill's as a file and as an etcd's data."""
    quotas = (settings(cluster, role).quota for role in held if settings(cluster, role).backup)
    return SYSTEM_DISK_GIB + sum(whole_gib(3 * quota) for quota in quotas)
