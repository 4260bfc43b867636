"""Whether a role assignment lets a principal use data, and when it starts to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from sandbox.simcloud.azure.common import folded
from sandbox.simcloud.azure.identities import ASSIGNMENT
from sandbox.simcloud.azure.role_definitions import ROLE
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import at
from sandbox.simcloud.world import Record

_KEYS = "Microsoft.KeyVault/vaults/keys"
USE_KEY = (f"{_KEYS}/read", f"{_KEYS}/wrap/action", f"{_KEYS}/unwrap/action")
"""What a service needs that encrypts with a key ("Customer-managed keys for Azure Storage encryption")."""

# "Azure built-in roles for Security": data actions of the roles that permit something about keys.
_BUILT_IN = {
    "00482a5a-887f-4fb3-b363-3b7fe8e74483": ("Microsoft.KeyVault/vaults/*",),
    "14b46e9e-c2b7-41b4-b07b-48a6ebf60603": (f"{_KEYS}/*",),
    "12338af0-0e69-4776-bea7-57ae8d297424": (
        *USE_KEY,
        *(f"{_KEYS}/{verb}/action" for verb in ("update", "backup", "encrypt", "decrypt", "sign", "verify")),
    ),
    "e147488a-f6f5-4113-8e2d-b22465e65bf6": USE_KEY,
}


def may(call: Call, principal: str, scope: str, actions: Collection[str]) -> bool:
    """Whether a principal may perform every one of these data actions at a scope, by assignments there or above that work."""
    working = [grant for grant in _assignments(call, principal, scope, actions) if call.works(grant)]
    return all(any(_permits(call, grant, action) for grant in working) for action in actions)


def _assignments(call: Call, principal: str, scope: str, actions: Collection[str]) -> Iterator[Record]:
    """Yield the assignments that count."""
    for assignment in call.world.of_type(ASSIGNMENT):
        above = folded(assignment.id).partition("/providers/microsoft.authorization/")[0]
        reaches = assignment.inputs.get("principalId") == principal and f"{folded(scope)}/".startswith(f"{above}/")
        if reaches and any(_permits(call, assignment, action) for action in actions):
            yield assignment


def _permits(call: Call, assignment: Record, action: str) -> bool:
    """Whether the role of an assignment has a data action."""
    role = folded(assignment.inputs.get("roleDefinitionId")).rpartition("/")[2]
    if role in _BUILT_IN:
        return _has(_BUILT_IN[role], action)
    own = (record for record in call.world.of_type(ROLE) if folded(record.id).rpartition("/")[2] == role)
    return any(
        _has(permission.get("dataActions") or (), action) and not _has(permission.get("notDataActions") or (), action)
        for record in own
        for permission in at(record.inputs, "permissions[]")
    )


def _has(patterns: Collection[str], action: str) -> bool:
    return any(fnmatchcase(folded(action), folded(pattern)) for pattern in patterns)
