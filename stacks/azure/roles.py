"""Roles: Azure's own by their IDs ("Azure built-in roles"), and our own, because Azure has none that are as limited."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_azure_native as azure

from cluster.spec import Cluster
from stacks import grants
from stacks.azure.rights import BuiltIn, id_of_own

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


def built_in(subscription: pulumi.Output[str], role: BuiltIn) -> pulumi.Output[str]:
    """Return the ID of one of Azure's own roles."""
    return _role_id(subscription, pulumi.Output.from_input(role.value))


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
