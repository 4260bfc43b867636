"""Managed identities and their roles."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.common import CLIENT, TENANT, find, folded, plain_outputs, under_group
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.scopes import scope_exists, scope_of
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Call, Naming, Reference, ResourceType
from sandbox.simcloud.values import Properties, at, plain
from sandbox.simcloud.world import Record

IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"

# Holds nothing: "Manage user-assigned managed identities" says that one can be deleted while resources use it.
HAS_IDENTITIES = Reference("identity.userAssignedIdentities[]", (IDENTITY,), holds=False, local=False)

_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ROLE = re.compile(rf".*/providers/Microsoft\.Authorization/roleDefinitions/{_GUID.pattern}", re.IGNORECASE)


def identity(call: Call) -> Properties | None:
    """Return the identity of a machine or service as Azure shows it, with its principals."""
    given = call.inputs.get("identity")
    if not given:
        return None
    shown: Properties = {"type": given.get("type"), "tenantId": TENANT}
    if "SystemAssigned" in str(given.get("type")):
        shown["principalId"] = guid(f"{call.id} principal")
    assigned = [(id_, find(call, (IDENTITY,), id_)) for id_ in given.get("userAssignedIdentities") or ()]
    if assigned:
        shown["userAssignedIdentities"] = {
            id_: {name: record.outputs[name] for name in ("clientId", "principalId")}
            for id_, record in assigned
            if record
        }
    return shown


def identities_match(call: Call) -> None:
    """Check that the identity's type matches the identities that are assigned."""
    given = call.inputs.get("identity") or {}
    kind, assigned = str(given.get("type") or "None"), given.get("userAssignedIdentities") or ()
    if bool(assigned) != ("UserAssigned" in kind):
        raise refused(
            "InvalidIdentityType" if assigned else "MissingIdentityIds",
            f"The identity of {call.id} has the type {kind} and {len(assigned)} user assigned identities.",
            "user assigned identities need the type UserAssigned or SystemAssigned, UserAssigned",
        )


def principals(record: Record) -> list[str]:
    """Return the principals that came with a resource."""
    outputs = plain(record.outputs)
    return [str(text) for path in ("principalId", "identity.principalId") for text in at(outputs, path)]


def _assignment_id(call: Call) -> str:
    name = call.text("roleAssignmentName") or guid(f"{call.urn} role assignment")
    return f"{scope_of(call)}/providers/Microsoft.Authorization/roleAssignments/{name}"


def _name_is_guid(call: Call) -> None:
    name = call.text("roleAssignmentName")
    if name and not _GUID.fullmatch(name):
        raise refused(
            "InvalidRoleAssignmentId",
            f"The role assignment ID '{name}' is not valid. The role assignment ID must be a GUID.",
            "leave out roleAssignmentName, or make it a GUID",
        )


def _role_is_named(call: Call) -> None:
    role = call.text("roleDefinitionId")
    if not _ROLE.fullmatch(role):
        raise refused(
            "RoleDefinitionDoesNotExist",
            f"The specified role definition with ID '{role}' does not exist.",
            "write /subscriptions/<id>/providers/Microsoft.Authorization/roleDefinitions/<GUID>",
        )


def _principal_exists(call: Call) -> None:
    """Check the principal; users and groups are not simulated.

    Azure looks a service principal up only if principalType does not say that it is one. A principal that does not exist
    would then grant nothing to anybody.
    """
    principal, kind = call.text("principalId"), call.text("principalType")
    made_here = any(principal in principals(record) for record in call.world if record.type != ASSIGNMENT)
    if made_here and kind not in ("", "ServicePrincipal"):
        raise refused(
            "UnmatchedPrincipalType",
            f"The PrincipalId '{principal}' has type 'ServicePrincipal', which is different from specified "
            f"PrinciaplType '{kind}'.",
            "set principalType to ServicePrincipal",
        )
    if not made_here and principal != CLIENT and kind in ("", "ServicePrincipal"):
        raise refused(
            "PrincipalNotFound",
            f"Principal {principal} does not exist in the directory {TENANT}. Check that you have the correct principal "
            "ID. If you are creating this principal and then immediately assigning a role, this error might be related "
            "to a replication delay. In this case, set the role assignment principalType property to a value, such as "
            "ServicePrincipal, User, or Group.",
            "set principalId to the principal ID of an existing identity, not to its ID or clientId",
        )


def _is_new(call: Call) -> None:
    for other in call.world.of_type(ASSIGNMENT):
        same = all(other.inputs.get(name) == call.inputs.get(name) for name in ("principalId", "roleDefinitionId"))
        if same and other.id != call.id and folded(other.id.rpartition("/")[0]) == folded(call.id.rpartition("/")[0]):
            raise refused(
                "RoleAssignmentExists", "The role assignment already exists.", f"{other} gives the same role", 409
            )


def _stays_the_same(call: Call) -> None:
    old = call.old.inputs if call.old else call.inputs
    if old.get("roleDefinitionId") != call.inputs.get("roleDefinitionId"):
        raise refused(
            "RoleAssignmentUpdateNotPermitted",
            "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
            "replace it: add roleDefinitionId to replace_on_changes",
        )


def _has_name(call: Call) -> None:
    if len(call.name) < 3:
        raise refused(
            "InvalidResourceName", f"Resource name {call.name} is invalid. It has 3 characters at least.", "lengthen it"
        )


_identity = ResourceType(
    token=IDENTITY,
    noun="User assigned identity",
    identify=under_group("Microsoft.ManagedIdentity/userAssignedIdentities"),
    outputs=plain_outputs(
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        tenantId=lambda _: TENANT,
        principalId=lambda call: guid(f"{call.id} principal"),
        clientId=lambda call: guid(f"{call.id} client"),
    ),
    naming=Naming(
        "resourceName",
        re.compile(r"[a-zA-Z0-9][\w-]*"),
        128,
        "It may have letters, digits, hyphens and underscores, and starts with a letter or digit.",
    ),
    where=("location",),
    replace_on=("resourceGroupName", "resourceName"),
    references=(IN_GROUP,),
    refuse=(_has_name,),
)

# Without a name the provider generates a GUID.
_assignment = ResourceType(
    token=ASSIGNMENT,
    noun="Role assignment",
    identify=_assignment_id,
    outputs=plain_outputs(
        "Microsoft.Authorization/roleAssignments",
        createdOn=lambda _: "2026-01-01T00:00:00.0000000Z",
        principalType=lambda call: call.text("principalType") or "User",
    ),
    # From the provider's own table of properties that force a replacement, plus the name.
    replace_on=("principalId", "scope", "roleAssignmentName"),
    refuse=(_name_is_guid, scope_exists, _role_is_named, _principal_exists, _is_new, _stays_the_same),
)

TYPES = (_identity, _assignment)
