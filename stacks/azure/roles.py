"""Roles: Azure's own by their ids ("Azure built-in roles"), and those that are ours because Azure has none so small."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import StrEnum

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster


class BuiltIn(StrEnum):
    """Each as Azure calls it."""

    KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER = "e147488a-f6f5-4113-8e2d-b22465e65bf6"
    KEY_VAULT_SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
    STORAGE_BLOB_DATA_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"


WRITE_SECRET = "Microsoft.KeyVault/vaults/secrets/setSecret/action"
_CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_BLOBS = f"{_CONTAINERS}/blobs"
USE_BLOBS = (f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action", f"{_BLOBS}/delete")
"""Not deleteBlobVersion and permanentDelete: what is deleted is hidden, and can be had back."""
ADD_BLOBS = (f"{_BLOBS}/add/action",)
"""To make blobs, and neither to write over one, read nor delete any ("Put Blob", permissions)."""
SEE_CONTAINER = (f"{_CONTAINERS}/read",)
"""That it is there, which restic asks before it makes a repository."""
_OURS = uuid.UUID("5f8a1a52-6c0c-5f0e-9f4e-0d6a8a0f5c11")


def built_in(subscription: pulumi.Output[str], role: BuiltIn) -> pulumi.Output[str]:
    """The id of one of Azure's own roles."""
    return _role_id(subscription, pulumi.Output.from_input(role.value))


def id_of_own(subscription: str, cluster: str, name: str) -> str:
    """The GUID of a role of our own, which is known before it is made."""
    return str(uuid.uuid5(_OURS, f"{subscription}/{cluster}/{name}"))


def own(
    cluster: Cluster,
    name: str,
    groups: Sequence[azure.resources.ResourceGroup],
    subscription: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
    *,
    actions: tuple[str, ...] = (),
    data_actions: tuple[str, ...] = (),
) -> pulumi.Output[str]:
    """The id of a new role that can be given in the cluster's groups alone. Names of roles are the whole tenant's."""
    own_id = subscription.apply(lambda known: id_of_own(known, cluster.name, name))
    made = azure.authorization.RoleDefinition(
        name,
        role_definition_id=own_id,
        role_name=own_id.apply(lambda known: f"menagerie {cluster.name} {name} {known[:8]}"),
        description="Made by menagerie.",
        role_type="CustomRole",
        scope=groups[0].id,
        assignable_scopes=[group.id for group in groups],
        permissions=[
            azure.authorization.PermissionArgs(actions=list(actions) or None, data_actions=list(data_actions) or None)
        ],
        opts=opts,
    )
    # Not the resource's own id, which has its scope before it and so differs from what an assignment is given back.
    return pulumi.Output.all(_role_id(subscription, own_id), made.id).apply(lambda known: str(known[0]))


def only_below(folders: Sequence[str]) -> str:
    """The condition under which a holder of `USE_BLOBS` uses blobs below these folders of a container and no others.

    Names are left out: who may list a container sees those of all folders. Form and names: "Azure role assignment condition
    format and syntax", "Actions and attributes for Azure role assignment conditions for Azure Blob Storage".
    """
    read, *others = (f"ActionMatches{{'{action}'}}" for action in USE_BLOBS)
    listing = f"({read} AND NOT SubOperationMatches{{'Blob.List'}})"
    concerned = " AND ".join(f"!({each})" for each in (listing[1:-1], *others))
    below = " OR ".join(f"@Resource[{_BLOBS}:path] StringStartsWith '{folder}/'" for folder in folders)
    return f"(({concerned}) OR ({below}))"


def assign(
    name: str,
    role: pulumi.Input[str],
    principal: pulumi.Input[str],
    scope: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    condition: str | None = None,
) -> azure.authorization.RoleAssignment:
    """Give an identity a role at a scope. It may take Azure ten minutes ("Troubleshoot Azure RBAC").

    condition: see `only_below`. Azure takes another for an assignment that there is ("Add or edit Azure role assignment
    conditions using the REST API").
    """
    return azure.authorization.RoleAssignment(
        name,
        condition=condition,
        condition_version="2.0" if condition else None,
        role_definition_id=role,
        principal_id=principal,
        # Without it Azure looks the identity up in the directory, which may not know it yet.
        principal_type="ServicePrincipal",
        scope=scope,
        opts=opts,
    )


def lock(name: str, what: pulumi.CustomResource, opts: pulumi.ResourceOptions) -> None:
    """Refuses to delete what keeps data, to people too: Azure has no other deletion protection for it."""
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
