"""Volumes of pods: who may create them, where they are, and with which key.

Actions are those of "Azure built-in roles for Containers", Azure Red Hat OpenShift Disk Storage Operator, without those
for snapshots and for machines outside scale sets; and those of azurefile's page "Driver Parameters" for shares in an
existing account.
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
"""The identity of the controllers' pool, for the vault too; no other machine has it."""
MAKE_DISKS = (
    *(f"{_DISKS}/{verb}" for verb in ("read", "write", "delete")),
    f"{_SETS}/read",
    f"{_SETS}/virtualMachines/read",
    f"{_SETS}/virtualMachines/write",
    "Microsoft.Compute/diskEncryptionSets/read",
)
"""Attaching a disk changes its machine; creating one requires reading its encryption set."""
MAKE_SHARES = (
    "Microsoft.Storage/storageAccounts/read",
    f"{_SHARES}/read",
    *(f"{_SHARES}/shares/{verb}" for verb in ("read", "write", "delete")),
)


class Volumes(pulumi.ComponentResource):
    """Permissions of the drivers' controllers in the workers' group, which contains neither etcd's disks nor API servers."""

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
        """Grant the identity of the controllers' pool its permissions."""
        principal = self._controllers.principal_id
        if has_block(self._cluster.spec):
            groups = [self._main, self._workers]
            role = self._role("disk-maker", groups, MAKE_DISKS)
            roles.assign("volumes", role, principal, self._workers.id, self._own)
            roles.assign("volumes-key", role, principal, self._keys.disks.id, self._own)
        if self.files is not None:
            role = self._role("share-maker", [self._main], MAKE_SHARES)
            roles.assign("shares", role, principal, self.files.id, self._own)

    def _classes(self) -> pulumi.Output[str]:
        """See `components.control_plane.csi.storage_classes`."""
        inputs: dict[str, Any] = {
            "cloud": {
                "tenantId": self._account.tenant_id,
                "subscriptionId": self._account.subscription_id,
                "resourceGroup": self._workers.name,
                "location": self._cluster.spec.control_plane.region,
                "userAssignedIdentityID": self._controllers.client_id,
            }
        }
        if has_block(self._cluster.spec):
            inputs["block"] = {"diskEncryptionSetID": self._keys.disks.id, "resourceGroup": self._workers.name}
        if self.files is not None:
            inputs["file"] = {"storageAccount": self.files.name, "resourceGroup": self._main.name}

        return pulumi.Output.from_input(inputs).apply(lambda values: csi.storage_classes(self._cluster, values))

    def _role(
        self, name: str, groups: list[azure.resources.ResourceGroup], actions: tuple[str, ...]
    ) -> pulumi.Output[str]:
        return roles.custom_role(self._cluster, name, groups, self._keys.subscription, self._own, actions=actions)

    def _file_account(self, storage: Storage) -> azure.storage.StorageAccount:
        """Create an account for NFS only, which has no TLS, so "secure transfer" is off ("NFS Azure file shares"): only hosts in
        the network can reach it, and it has no keys."""
        account = encrypted_account(
            files_name(self._cluster),
            self._main.name,
            self._keys,
            storage.identity,
            pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(parent=self, protect=is_protected()), storage.for_accounts
            ),
            kind="FileStorage",
            sku="Premium_ZRS",
            enable_https_traffic_only=False,
            network_rule_set=azure.storage.NetworkRuleSetArgs(
                bypass="None", default_action=azure.storage.DefaultAction.DENY
            ),
            tags=tags(self._cluster, "files"),
        )
        self._endpoints.add("file", account.id, "privatelink.file.core.windows.net")
        return account
