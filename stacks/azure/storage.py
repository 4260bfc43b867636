"""The cluster's storage account: locked backups, logs, and artefacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_azure_native as azure

from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from components.control_plane import audit_log
from etcd.backups import USE
from stacks import audit_logs, grants
from stacks.azure import roles
from stacks.azure.keys import Keys
from stacks.azure.network import Network
from stacks.azure.rights import BuiltIn
from stacks.azure.tags import account_name, tags
from stacks.backups import Buckets, kept_days
from stacks.protection import is_protected

BACKUPS, AUDIT, ARTEFACTS = "backups", "audit-logs", "artefacts"
_FLOW_LOGS = "insights-logs-flowlogflowevent"
""""Virtual network flow logs": the container that Azure creates for them."""
_FLOW_LOG_DAYS = 30
_UNDELETE_DAYS = 7
# Azure creates both itself with the first network of a region ("Enable or disable Azure Network Watcher").
_WATCHERS = "NetworkWatcherRG"


class Storage(pulumi.ComponentResource):
    """Zone-redundant, encrypted with the cluster's key, without account keys and without an address outside the network.

    Always holds flow logs and artefacts. The container for backups exists if an etcd of the spec has backups; without it
    no host has any permission here.
    """

    backups: azure.storage.BlobContainer | None

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        network: Network,
        keys: Keys,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Storage", "storage", None, opts)
        self._cluster = cluster
        self._group = group
        self._keys = keys
        self._own = pulumi.ResourceOptions(parent=self)
        # Only for services of Azure, on no machine: the account is encrypted with the key, and flow logs are written to it.
        self.identity = azure.managedidentity.UserAssignedIdentity(
            "storage", resource_group_name=group, tags=tags(cluster, "storage"), opts=self._own
        )
        self.for_accounts = keys.may_encrypt("storage", self.identity.principal_id)
        """Options for accounts that are encrypted with this identity."""
        self.account = self._account()
        self.backups = None
        self._kept = pulumi.ResourceOptions(parent=self, protect=is_protected(), depends_on=[self._blobs()])
        self._container(ARTEFACTS)
        self._locked: dict[str, pulumi.Output[int]] = {}
        self.audit = self._immutable(AUDIT, audit_logs.kept_days(cluster))
        if cluster.spec.has_backups:
            # A blob that restic deletes becomes a version, which is immutable for its time and then hidden for as long again.
            self.backups = self._immutable(BACKUPS, kept_days(cluster))
        self._lifecycle()
        self._log_flows(network)
        self.register_outputs({})

    def _account(self) -> azure.storage.StorageAccount:
        return encrypted_account(
            account_name(self._cluster),
            self._group,
            self._keys,
            self.identity,
            pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(parent=self, protect=is_protected()), self.for_accounts
            ),
            kind="StorageV2",
            sku="Standard_ZRS",
            enable_https_traffic_only=True,
            # Flow logs come from a trusted service, from outside the network.
            network_rule_set=azure.storage.NetworkRuleSetArgs(
                bypass="AzureServices", default_action=azure.storage.DefaultAction.DENY
            ),
            tags=tags(self._cluster, "storage"),
        )

    def _blobs(self) -> azure.storage.BlobServiceProperties:
        """Keep deleted blobs recoverable for as long as backups are kept: a lifecycle counts a version's age from when it was
        written, so an old one that is deleted today would be gone tomorrow."""
        guarded = max(kept_days(self._cluster), _UNDELETE_DAYS)
        return azure.storage.BlobServiceProperties(
            "blobs",
            resource_group_name=self._group,
            account_name=self.account.name,
            blob_services_name="default",
            is_versioning_enabled=True,
            delete_retention_policy=azure.storage.DeleteRetentionPolicyArgs(enabled=True, days=guarded),
            container_delete_retention_policy=azure.storage.DeleteRetentionPolicyArgs(
                enabled=True, days=_UNDELETE_DAYS
            ),
            opts=self._own,
        )

    def _container(self, use: str, **more: Any) -> azure.storage.BlobContainer:
        return azure.storage.BlobContainer(
            use,
            resource_group_name=self._group,
            account_name=self.account.name,
            container_name=use,
            opts=self._kept,
            **more,
        )

    def _immutable(self, use: str, days: int) -> azure.storage.BlobContainer:
        """Create a container for write-once data: every version of a blob stays for so many days."""
        versions = azure.storage.ImmutableStorageWithVersioningArgs(enabled=True)
        container = self._container(use, immutable_storage_with_versioning=versions)
        policy = azure.storage.BlobContainerImmutabilityPolicy(
            use,
            resource_group_name=self._group,
            account_name=self.account.name,
            container_name=container.name,
            immutability_policy_name="default",
            immutability_period_since_creation_in_days=days,
            opts=self._own,
        )
        self._locked[use] = policy.immutability_period_since_creation_in_days.apply(lambda days: int(days or 0))
        return container

    def _lifecycle(self) -> None:
        azure.storage.ManagementPolicy(
            "lifecycle",
            resource_group_name=self._group,
            account_name=self.account.name,
            management_policy_name="default",
            policy=azure.storage.ManagementPolicySchemaArgs(
                rules=[
                    _removed(BACKUPS, kept_days(self._cluster), only_versions=True),
                    _removed(AUDIT, audit_logs.kept_days(self._cluster)),
                    _removed(_FLOW_LOGS, _FLOW_LOG_DAYS),
                ]
            ),
            opts=self._own,
        )

    def buckets(self) -> Buckets:
        """See `stacks.provider.Provider`."""
        uses = {"records": ARTEFACTS, audit_log.USE: AUDIT, **({USE: BACKUPS} if self.backups else {})}
        return pulumi.Output.all(account=self.account.name, days=pulumi.Output.all(**self._locked)).apply(
            lambda values: {
                use: BucketOutput(
                    kind="azure", name=name, account=values["account"], locked_days=values["days"].get(name, 0)
                )
                for use, name in uses.items()
            }
        )

    def _log_flows(self, network: Network) -> None:
        """Log connections. Uses an identity, because the account accepts no keys."""
        granted = roles.assign(
            "flow-logs",
            roles.built_in(self._keys.subscription, BuiltIn.STORAGE_BLOB_DATA_CONTRIBUTOR),
            self.identity.principal_id,
            self.account.id,
            self._own,
        )
        who = "the identity of storage has the role Storage Blob Data Contributor on the cluster's storage account"
        writing = grants.after("flow-logs", granted, who, roles.SLOW)
        region = self._cluster.spec.control_plane.region
        azure.network.FlowLog(
            "flow-logs",
            resource_group_name=_WATCHERS,
            network_watcher_name=f"NetworkWatcher_{region}",
            flow_log_name=f"menagerie-{self._cluster.name}",
            target_resource_id=network.network.id,
            storage_id=self.account.id,
            enabled=True,
            retention_policy=azure.network.RetentionPolicyParametersArgs(enabled=True, days=_FLOW_LOG_DAYS),
            format=azure.network.FlowLogFormatParametersArgs(type="JSON", version=2),
            identity=azure.network.ManagedServiceIdentityArgs(
                type=azure.network.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[self.identity.id]
            ),
            tags=tags(self._cluster, "flow-logs"),
            opts=pulumi.ResourceOptions.merge(self._own, writing),
        )


def encrypted_account(
    name: str,
    group: pulumi.Input[str],
    keys: Keys,
    identity: azure.managedidentity.UserAssignedIdentity,
    opts: pulumi.ResourceOptions,
    *,
    kind: str,
    sku: str,
    enable_https_traffic_only: bool,
    network_rule_set: azure.storage.NetworkRuleSetArgs,
    tags: Mapping[str, str],
) -> azure.storage.StorageAccount:
    """Create an account encrypted with the cluster's key, without account keys and without an address outside the network.

    identity: user-assigned, because the account needs the key when it is created and has no system-assigned identity yet.
    """
    return azure.storage.StorageAccount(
        name,
        resource_group_name=group,
        kind=kind,
        sku=azure.storage.SkuArgs(name=sku),
        identity=azure.storage.IdentityArgs(type="UserAssigned", user_assigned_identities=[identity.id]),
        encryption=azure.storage.EncryptionArgs(
            key_source="Microsoft.Keyvault",
            key_vault_properties=azure.storage.KeyVaultPropertiesArgs(
                # Without a version, so that Azure follows the key's rotation.
                key_name=keys.key.name,
                key_vault_uri=keys.uri,
            ),
            encryption_identity=azure.storage.EncryptionIdentityArgs(encryption_user_assigned_identity=identity.id),
        ),
        allow_blob_public_access=False,
        allow_shared_key_access=False,
        allow_cross_tenant_replication=False,
        default_to_o_auth_authentication=True,
        enable_https_traffic_only=enable_https_traffic_only,
        minimum_tls_version="TLS1_2",
        public_network_access="Disabled",
        network_rule_set=network_rule_set,
        tags=tags,
        opts=opts,
    )


def _removed(container: str, days: int, *, only_versions: bool = False) -> azure.storage.ManagementPolicyRuleArgs:
    """Return a rule that deletes blobs and their former versions at this age, or only the versions."""
    blobs = azure.storage.ManagementPolicyBaseBlobArgs(
        delete=azure.storage.DateAfterModificationArgs(days_after_modification_greater_than=days)
    )
    return azure.storage.ManagementPolicyRuleArgs(
        name=container,
        type="Lifecycle",
        enabled=True,
        definition=azure.storage.ManagementPolicyDefinitionArgs(
            filters=azure.storage.ManagementPolicyFilterArgs(blob_types=["blockBlob"], prefix_match=[f"{container}/"]),
            actions=azure.storage.ManagementPolicyActionArgs(
                base_blob=None if only_versions else blobs,
                version=azure.storage.ManagementPolicyVersionArgs(
                    delete=azure.storage.DateAfterCreationArgs(days_after_creation_greater_than=days)
                ),
            ),
        ),
    )
