"""Volumes of pods: who may make them, where they lie, and with which key.

Actions are those of "Azure built-in roles for Containers", Azure Red Hat OpenShift Disk Storage Operator, less what
stands for snapshots and machines that are in no scale set; and of azurefile's page "Driver Parameters" for shares in an
account that exists.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from cluster.storage import has_block, has_file
from components.control_plane import csi
from stacks.azure import roles
from stacks.azure.endpoints import Endpoints
from stacks.azure.keys import Keys
from stacks.azure.storage import Storage, encrypted_account
from stacks.azure.tags import files_name, tags
from stacks.protection import is_protected

_DISKS, _SETS = "Microsoft.Compute/disks", "Microsoft.Compute/virtualMachineScaleSets"
_SHARES = "Microsoft.Storage/storageAccounts/fileServices"
CONTROLLERS = "controllers"
"""As whom machines of the controllers' pool ask, the vault too; no other machine has this identity."""
MAKE_DISKS = (
    *(f"{_DISKS}/{verb}" for verb in ("read", "write", "delete")),
    f"{_SETS}/read",
    f"{_SETS}/virtualMachines/read",
    f"{_SETS}/virtualMachines/write",
    "Microsoft.Compute/diskEncryptionSets/read",
)
"""A disk is attached by a change of its machine, and made with a set that its maker can read."""
MAKE_SHARES = (
    "Microsoft.Storage/storageAccounts/read",
    f"{_SHARES}/read",
    *(f"{_SHARES}/shares/{verb}" for verb in ("read", "write", "delete")),
)


class Volumes(pulumi.ComponentResource):
    """Rights of the drivers' controllers in the group of workers: neither etcd's disks nor API servers are in it."""

    def __init__(
        self,
        cluster: Cluster,
        main: azure.resources.ResourceGroup,
        workers: azure.resources.ResourceGroup,
        account: pulumi.Output[azure.authorization.GetClientConfigResult],
        keys: Keys,
        storage: Storage,
        endpoints: Endpoints,
        controllers: azure.managedidentity.UserAssignedIdentity,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Volumes", "volumes", None, opts)
        self._cluster, self._main, self._workers, self._account = cluster, main, workers, account
        self._keys, self._endpoints, self._controllers = keys, endpoints, controllers
        self._own = pulumi.ResourceOptions(parent=self)
        self.files = self._file_account(storage) if has_file(cluster.spec) else None
        self._let_controllers()
        self.classes = self._classes()
        self.register_outputs({})

    def _let_controllers(self) -> None:
        """Give the identity of the controllers' pool its rights."""
        who = self._controllers.principal_id
        if has_block(self._cluster.spec):
            groups = [self._main, self._workers]
            role = self._role("disk-maker", groups, MAKE_DISKS)
            roles.assign("volumes", role, who, self._workers.id, self._own)
            roles.assign("volumes-key", role, who, self._keys.disks.id, self._own)
        if self.files is not None:
            role = self._role("share-maker", [self._main], MAKE_SHARES)
            roles.assign("shares", role, who, self.files.id, self._own)

    def _classes(self) -> pulumi.Output[str]:
        """See `components.control_plane.csi.storage_classes`."""
        known: dict[str, Any] = {
            "cloud": {
                "tenantId": self._account.tenant_id,
                "subscriptionId": self._account.subscription_id,
                "resourceGroup": self._workers.name,
                "location": self._cluster.spec.control_plane.region,
                "userAssignedIdentityID": self._controllers.client_id,
            }
        }
        if has_block(self._cluster.spec):
            known["block"] = {"diskEncryptionSetID": self._keys.disks.id, "resourceGroup": self._workers.name}
        if self.files is not None:
            known["file"] = {"storageAccount": self.files.name, "resourceGroup": self._main.name}

        return pulumi.Output.from_input(known).apply(lambda found: csi.storage_classes(self._cluster, found))

    def _role(
        self, name: str, groups: list[azure.resources.ResourceGroup], actions: tuple[str, ...]
    ) -> pulumi.Output[str]:
        return roles.own(self._cluster, name, groups, self._keys.subscription, self._own, actions=actions)

    def _file_account(self, storage: Storage) -> azure.storage.StorageAccount:
        """For NFS alone, which speaks without TLS, so "secure transfer" is off ("NFS Azure file shares"): nobody but hosts
        in the network reaches it, and there are no keys to it."""
        made = encrypted_account(
            files_name(self._cluster),
            self._main.name,
            self._keys,
            storage.identity,
            pulumi.ResourceOptions(parent=self, protect=is_protected(), depends_on=[storage.granted]),
            kind="FileStorage",
            sku="Premium_ZRS",
            enable_https_traffic_only=False,
            network_rule_set=azure.storage.NetworkRuleSetArgs(
                bypass="None", default_action=azure.storage.DefaultAction.DENY
            ),
            tags=tags(self._cluster, "files"),
        )
        self._endpoints.add("file", made.id, "privatelink.file.core.windows.net")
        return made
