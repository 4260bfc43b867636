"""Locks. Their effect is a rule of every other type ("Lock your resources to protect your infrastructure")."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.common import folded, plain_outputs
from sandbox.simcloud.azure.scopes import scope_exists, under_scope
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.rules import Call, Naming, ResourceType

LOCK = "azure-native:authorization:ManagementLockByScope"

_LEVELS = ("CanNotDelete", "ReadOnly")


def unlocked(call: Call) -> None:
    """Check that no lock on the resource, above it or below it prevents its deletion; ReadOnly locks also prevent updates."""
    if call.type.token == LOCK:
        return
    for lock in call.world.of_type(LOCK):
        scope = _scope(lock.id)
        above = _is_below(call.id, scope)
        if above or _is_below(scope, call.id):
            raise refused(
                "ScopeLocked",
                f"The scope '{call.id}' cannot perform delete operation because following scope(s) are locked: "
                f"'{scope}'. Please remove the lock and try again.",
                f"delete the lock {lock.id} first",
                409,
            )


def writable(call: Call) -> None:
    """Check that no ReadOnly lock on the resource or above it prevents creating or changing it."""
    for lock in call.world.of_type(LOCK):
        scope = _scope(lock.id)
        if call.type.token != LOCK and lock.inputs.get("level") == "ReadOnly" and _is_below(call.id, scope):
            raise refused(
                "ScopeLocked",
                f"The scope '{call.id}' cannot perform write operation because following scope(s) are locked: "
                f"'{scope}'. Please remove the lock and try again.",
                f"delete the lock {lock.id} first",
                409,
            )


def _scope(lock: str) -> str:
    return lock.partition("/providers/Microsoft.Authorization/locks/")[0]


def _is_below(id_: str, scope: str) -> bool:
    return f"{folded(id_)}/".startswith(f"{folded(scope)}/")


def _has_level(call: Call) -> None:
    if call.text("level") not in _LEVELS:
        raise refused(
            BAD_REQUEST, f"Lock {call.id} has the level {call.text('level')}.", f"one of {', '.join(_LEVELS)}"
        )


_lock = ResourceType(
    token=LOCK,
    noun="Lock",
    identify=under_scope("Microsoft.Authorization/locks"),
    outputs=plain_outputs("Microsoft.Authorization/locks"),
    naming=Naming(
        "lockName",
        re.compile(r"[^<>%&:\\?/]+"),
        90,
        "The lock name cannot contain <, > %, &, :, \\, ?, /, or any control characters.",
    ),
    replace_on=("lockName", "scope"),
    refuse=(scope_exists, _has_level),
)

TYPES = (_lock,)
