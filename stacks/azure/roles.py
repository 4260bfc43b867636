"""Roles: Azure's own by their IDs ("Azure built-in roles"), and our own, because Azure has none that are as limited."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import StrEnum

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from stacks import grants


class BuiltIn(StrEnum):
    """Built-in roles under Azure's names."""

    KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER = "e147488a-f6f5-4113-8e2d-b22465e65bf6"
    KEY_VAULT_SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
    STORAGE_BLOB_DATA_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"


WRITE_SECRET = "Microsoft.KeyVault/vaults/secrets/setSecret/action"
_CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_BLOBS = f"{_CONTAINERS}/blobs"
USE_BLOBS = (f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action", f"{_BLOBS}/delete")
"""Without deleteBlobVersion and permanentDelete: deleted blobs are hidden and can be restored."""
ADD_BLOBS = (f"{_BLOBS}/add/action",)
"""To create blobs, without overwriting, reading or deleting any ("Put Blob", permissions)."""
SEE_CONTAINER = (f"{_CONTAINERS}/read",)
"""To see that it exists, which restic checks before it creates a repository."""
SLOW = grants.SlowGrants(
    "Azure",
    15 * 60,
    (
        # Of storage accounts and of disks (github.com/Azure/bicep, issues 16601 and 6166).
        "KeyVaultAuthenticationFailure|KeyVaultAccessForbidden",
        # Of a vault's and a storage account's own APIs ("Troubleshoot Azure RBAC"; "Common REST API error codes", Storage).
        "role assignments, deny assignments or role definitions were changed recently|AuthorizationPermissionMismatch",
    ),
    # The engine's form for a list of errors (plugin.InitError); azure-native's other errors are single ones.
    partial=r"^\d+ errors? occurred:",
)
""""Troubleshoot Azure RBAC": role assignments take up to ten minutes. Five more, because that is no promise."""
_OURS = uuid.UUID("5f8a1a52-6c0c-5f0e-9f4e-0d6a8a0f5c11")


def built_in(subscription: pulumi.Output[str], role: BuiltIn) -> pulumi.Output[str]:
    """Return the ID of one of Azure's own roles."""
    return _role_id(subscription, pulumi.Output.from_input(role.value))


def id_of_own(subscription: str, cluster: str, name: str) -> str:
    """Return the GUID of one of our roles, which is known before the role exists."""
    return str(uuid.uuid5(_OURS, f"{subscription}/{cluster}/{name}"))


def custom_role(
    cluster: Cluster,
    name: str,
    groups: Sequence[azure.resources.ResourceGroup],
    subscription: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
    *,
    actions: tuple[str, ...] = (),
    data_actions: tuple[str, ...] = (),
) -> pulumi.Output[str]:
    """Return the ID of a new role that can be assigned only in the cluster's groups. Role names are unique in the tenant."""
    own_id = subscription.apply(lambda subscription_id: id_of_own(subscription_id, cluster.name, name))
    definition = azure.authorization.RoleDefinition(
        name,
        role_definition_id=own_id,
        role_name=own_id.apply(lambda subscription_id: f"menagerie {cluster.name} {name} {subscription_id[:8]}"),
        description="Made by menagerie.",
        role_type="CustomRole",
        scope=groups[0].id,
        assignable_scopes=[group.id for group in groups],
        permissions=[
            azure.authorization.PermissionArgs(actions=list(actions) or None, data_actions=list(data_actions) or None)
        ],
        opts=opts,
    )
    # Not the resource's own ID: it starts with the scope, and so differs from the ID that an assignment returns.
    return pulumi.Output.all(_role_id(subscription, own_id), definition.id).apply(
        lambda subscription_id: str(subscription_id[0])
    )


def only_below(folders: Sequence[str]) -> str:
    """Return the condition that restricts a holder of `USE_BLOBS` to blobs below these folders of a container.

    Listing is exempt: a holder who may list a container sees the names of all folders. Form and names: "Azure role assignment
    condition format and syntax", "Actions and attributes for Azure role assignment conditions for Azure Blob Storage".
    """
    read, *others = (f"ActionMatches{{'{action}'}}" for action in USE_BLOBS)
    listing = f"({read} AND NOT SubOperationMatches{{'Blob.List'}})"
    not_concerned = " AND ".join(f"!({match})" for match in (listing[1:-1], *others))
    below = " OR ".join(f"@Resource[{_BLOBS}:path] StringStartsWith '{folder}/'" for folder in folders)
    return f"(({not_concerned}) OR ({below}))"


def assign(
    name: str,
    role: pulumi.Input[str],
    principal: pulumi.Input[str],
    scope: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    condition: str | None = None,
) -> azure.authorization.RoleAssignment:
    """Assign a role at a scope to an identity. Azure may need ten minutes to apply it ("Troubleshoot Azure RBAC").

    condition: see `only_below`. Azure can change the condition of an existing assignment ("Add or edit Azure role assignment
    conditions using the REST API").
    """
    return azure.authorization.RoleAssignment(
        name,
        condition=condition,
        condition_version="2.0" if condition else None,
        role_definition_id=role,
        principal_id=principal,
        # Without it Azure looks up the identity in the directory, which may not know it yet.
        principal_type="ServicePrincipal",
        scope=scope,
        opts=opts,
    )


def lock(name: str, what: pulumi.CustomResource, opts: pulumi.ResourceOptions) -> None:
    """Refuse the deletion of a resource that keeps data, even by people: Azure has no other deletion protection for it."""
    azure.authorization.ManagementLockByScope(
        f"{name}-lock",
        lock_name=f"{name}-keeps-data",
        level="CanNotDelete",
        scope=what.id,
        notes="Keeps data. Made by menagerie.",
        opts=opts,
    )


def _role_id(subscription: pulumi.Output[str], role: pulumi.Output[str]) -> pulumi.Output[str]:
    return pulumi.Output.format(
        "/subscriptions/{0}/providers/Microsoft.Authorization/roleDefinitions/{1}", subscription, role
    )
