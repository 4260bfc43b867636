"""Volumes of pods: the file system that many nodes mount, and the stack's parameters for StorageClasses."""

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
    """The driver creates disks when a pod requests them; all they need from the stack is its key."""

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
        file_system = aws.efs.FileSystem(
            name,
            # EFS creates one file system per token, however often it is requested ("CreateFileSystem").
            creation_token=short(name, _LONGEST_TOKEN),
            encrypted=True,
            kms_key_id=self._storage.key.arn,
            throughput_mode="elastic",
            tags=tags(self._cluster, "files"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )
        policy = file_system.arn.apply(lambda arn: policies.document(*volume_rights.only_by_mount(arn)))
        aws.efs.FileSystemPolicy(name, file_system_id=file_system.id, policy=policy, opts=self._own)
        for zone, subnets in network.zones.items():
            aws.efs.MountTarget(
                f"{name}-{zone}",
                file_system_id=file_system.id,
                # Not in a subnet with fixed addresses: AWS chooses this one.
                subnet_id=subnets.workers.id,
                security_groups=[security.of[Role.FILE_STORE].id],
                opts=self._own,
            )
        return file_system

    def classes(self) -> pulumi.Output[str]:
        """Return the text of storage-classes.json."""
        inputs = pulumi.Output.all(key=self._storage.key.arn, files=self.files.id if self.files else None)
        return inputs.apply(self._classes)

    def _classes(self, inputs: Mapping[str, Any]) -> str:
        parameters: dict[str, dict[str, str]] = {}
        if has_block(self._cluster.spec):
            parameters["block"] = {"kmsKeyId": inputs["key"]}
        if inputs["files"]:
            parameters["file"] = {"fileSystemId": inputs["files"]}
        return storage_classes(self._cluster, parameters)
