"""The cluster's key vault, and the key that encrypts stored data."""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from stacks import grants
from stacks.azure import roles
from stacks.azure.rights import BuiltIn
from stacks.azure.tags import tags, vault_name
from stacks.protection import is_protected

_RETENTION_DAYS = 90
_KEY_BITS = 3072
_ROTATED_AFTER = "P1Y"


class Keys(pulumi.ComponentResource):
    """A vault that nobody can purge, with one key, and the encryption set through which disks use it.

    The vault has no address outside the network. The engine creates keys and secrets through the Resource Manager, so it
    needs neither network access nor permission to read them. It could delete them only from inside the network, so they
    stay until the vault is deleted (`retain_on_delete`).
    """

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        account: pulumi.Output[azure.authorization.GetClientConfigResult],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:azure:Keys", "keys", None, opts)
        self._cluster = cluster
        self._group = group
        self.subscription = account.subscription_id
        self.vault = self._vault(account.tenant_id)
        self.uri = self.vault.properties.vault_uri
        self.key = self._key()
        self.disks = self._for_disks()
        principal = self.disks.identity.apply(lambda identity: str(identity.principal_id if identity else ""))
        self.for_disks = self.may_encrypt("disks", principal)
        """Options for disks, and for machines that create some."""
        self.register_outputs({})

    def _vault(self, tenant: pulumi.Output[str]) -> azure.keyvault.Vault:
        """Create the vault, without a lock: role assignments at its secrets change with members and pools; a lock would keep them."""
        return azure.keyvault.Vault(
            vault_name(self._cluster),
            resource_group_name=self._group,
            properties=azure.keyvault.VaultPropertiesArgs(
                tenant_id=tenant,
                sku=azure.keyvault.SkuArgs(family="A", name=azure.keyvault.SkuName.STANDARD),
                enable_rbac_authorization=True,
                enable_soft_delete=True,
                enable_purge_protection=True,
                soft_delete_retention_in_days=_RETENTION_DAYS,
                public_network_access="Disabled",
                # Disks and storage accounts use their key as trusted services, from outside the network.
                network_acls=azure.keyvault.NetworkRuleSetArgs(bypass="AzureServices", default_action="Deny"),
            ),
            tags=tags(self._cluster, "keys"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )

    def _key(self) -> azure.keyvault.Key:
        return azure.keyvault.Key(
            "encryption",
            resource_group_name=self._group,
            vault_name=self.vault.name,
            properties=azure.keyvault.KeyPropertiesArgs(
                kty="RSA",
                key_size=_KEY_BITS,
                rotation_policy=azure.keyvault.RotationPolicyArgs(
                    lifetime_actions=[
                        azure.keyvault.LifetimeActionArgs(
                            action=azure.keyvault.ActionArgs(type=azure.keyvault.KeyRotationPolicyActionType.ROTATE),
                            trigger=azure.keyvault.TriggerArgs(time_after_create=_ROTATED_AFTER),
                        )
                    ]
                ),
            ),
            tags=tags(self._cluster, "keys"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected(), retain_on_delete=True),
        )

    def _for_disks(self) -> azure.compute.DiskEncryptionSet:
        """Create the disks' encryption set, with its own identity: Premium SSD v2 and Ultra disks support no other ("Server-side
        encryption of Azure Disk Storage")."""
        return azure.compute.DiskEncryptionSet(
            "disks",
            resource_group_name=self._group,
            encryption_type="EncryptionAtRestWithCustomerKey",
            active_key=azure.compute.KeyForDiskEncryptionSetArgs(
                key_url=self.key.key_uri_with_version,
                source_vault=azure.compute.SourceVaultArgs(id=self.vault.id),
            ),
            rotation_to_latest_key_version_enabled=True,
            identity=azure.compute.EncryptionSetIdentityArgs(type="SystemAssigned"),
            tags=tags(self._cluster, "keys"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )

    def may_encrypt(self, name: str, principal: pulumi.Input[str]) -> pulumi.ResourceOptions:
        """Permit an identity to wrap and unwrap with the key, and nothing else. Return options for what uses the key with it."""
        granted = roles.assign(
            f"{name}-key",
            roles.built_in(self.subscription, BuiltIn.KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER),
            principal,
            self.key.id,
            pulumi.ResourceOptions(parent=self),
        )
        who = f"the identity of {name} has the role Key Vault Crypto Service Encryption User on the key of the cluster's vault"
        return grants.after(f"{name}-key", granted, who, roles.SLOW)
