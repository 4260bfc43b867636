"""Custom roles ("Azure custom roles")."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.common import folded, plain_outputs
from sandbox.simcloud.azure.identities import ASSIGNMENT
from sandbox.simcloud.azure.scopes import scope_exists, under_scope
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.rules import Call, Naming, ResourceType
from sandbox.simcloud.values import at

ROLE = "azure-native:authorization:RoleDefinition"

_LISTS = ("actions", "notActions", "dataActions", "notDataActions")


def _name_is_unique_in_tenant(call: Call) -> None:
    name = call.text("roleName")
    if not name:
        raise refused(BAD_REQUEST, f"Role definition {call.id} has no name.", "set roleName")
    for other in call.world.of_type(ROLE):
        if other.id != call.id and folded(other.inputs.get("roleName")) == folded(name):
            raise refused(
                "RoleDefinitionWithSameNameExists",
                f"A custom role with the same name '{name}' already exists in this directory. Use a different name.",
                f"{other} has it",
                409,
            )


def _is_assignable(call: Call) -> None:
    """Check that a role is assignable at its own scope or below; further scopes are allowed ("Understand Azure custom roles",
    AssignableScopes).
    """
    scope = folded(f"/{call.text('scope').strip('/')}")
    given = [folded(text) for text in at(call.inputs, "assignableScopes[]")]
    if not any(f"{text}/".startswith(f"{scope}/") for text in given):
        raise refused(
            "InvalidRoleDefinitionScope",
            f"Role definition {call.id} has the assignable scopes {', '.join(given) or 'none'} in addition to its scope {scope}.",
            "name its own scope, or one inside it",
        )


def _permits_something(call: Call) -> None:
    if not any(permission.get(name) for permission in at(call.inputs, "permissions[]") for name in _LISTS[::2]):
        raise refused(
            "InvalidActionOrNotAction", f"Role definition {call.id} permits nothing.", "give it actions or dataActions"
        )


def _is_unassigned(call: Call) -> None:
    own = folded(call.id).rpartition("/")[2]
    for assignment in call.world.of_type(ASSIGNMENT):
        if folded(assignment.inputs.get("roleDefinitionId")).rpartition("/")[2] == own:
            raise refused(
                "RoleDefinitionHasAssignments",
                "There are existing role assignments referencing role.",
                f"delete first: {assignment}",
            )


_role = ResourceType(
    token=ROLE,
    noun="Role definition",
    identify=under_scope("Microsoft.Authorization/roleDefinitions"),
    outputs=plain_outputs("Microsoft.Authorization/roleDefinitions"),
    naming=Naming(
        "roleDefinitionId", re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), 36, "It must be a GUID."
    ),
    replace_on=("roleDefinitionId", "scope"),
    refuse=(scope_exists, _name_is_unique_in_tenant, _is_assignable, _permits_something),
    refuse_deletion=(_is_unassigned,),
)

TYPES = (_role,)
