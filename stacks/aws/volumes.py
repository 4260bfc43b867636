"""Volumes of pods: the file system that many nodes mount, and what StorageClasses must know of the stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from cluster.storage import has_block, has_file
from components.control_plane.csi import storage_classes
from components.flows.flow import Role
from stacks.aws import policies, volume_rights
from stacks.aws.network import Network
from stacks.aws.security import SecurityGroups
from stacks.aws.storage import Storage
from stacks.aws.tags import tags
from stacks.names import short
from stacks.protection import is_protected

_LONGEST_TOKEN = 64


class Volumes(pulumi.ComponentResource):
    """Disks are made by their driver when a pod asks; all that they need of the stack is its key."""

    files: aws.efs.FileSystem | None

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        security: SecurityGroups,
        storage: Storage,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:Volumes", f"{cluster.name}-volumes", None, opts)
        self._cluster = cluster
        self._storage = storage
        self._own = pulumi.ResourceOptions(parent=self)
        self.files = self._file_system(network, security) if has_file(cluster.spec) else None
        self.register_outputs({})

    def _file_system(self, network: Network, security: SecurityGroups) -> aws.efs.FileSystem:
        name = f"{self._cluster.name}-files"
        made = aws.efs.FileSystem(
            name,
            # EFS makes one for a token, however often it is asked ("CreateFileSystem").
            creation_token=short(name, _LONGEST_TOKEN),
            encrypted=True,
            kms_key_id=self._storage.key.arn,
            throughput_mode="elastic",
            tags=tags(self._cluster, "files"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )
        policy = made.arn.apply(lambda arn: policies.document(*volume_rights.only_by_mount(arn)))
        aws.efs.FileSystemPolicy(name, file_system_id=made.id, policy=policy, opts=self._own)
        for zone, subnets in network.zones.items():
            aws.efs.MountTarget(
                f"{name}-{zone}",
                file_system_id=made.id,
                # Not beside what has fixed addresses: this one is AWS's choice.
                subnet_id=subnets.workers.id,
                security_groups=[security.of[Role.FILE_STORE].id],
                opts=self._own,
            )
        return made

    def classes(self) -> pulumi.Output[str]:
        """The text of storage-classes.json."""
        known = pulumi.Output.all(key=self._storage.key.arn, files=self.files.id if self.files else None)
        return known.apply(self._classes)

    def _classes(self, known: Mapping[str, Any]) -> str:
        parameters: dict[str, dict[str, str]] = {}
        if has_block(self._cluster.spec):
            parameters["block"] = {"kmsKeyId": known["key"]}
        if known["files"]:
            parameters["file"] = {"fileSystemId": known["files"]}
        return storage_classes(self._cluster, parameters)
