"""Scopes of role assignments and locks: a resource, a group, or the subscription."""

from __future__ import annotations

from collections.abc import Callable

from sandbox.simcloud.azure.common import folded
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call


def scope_of(call: Call) -> str:
    """Return the scope, which programs write with or without the leading slash."""
    return "/" + call.text("scope").strip("/")


def under_scope(kind: str) -> Callable[[Call], str]:
    """Return a function for IDs at a scope. kind: ``Microsoft.Authorization/locks``."""
    return lambda call: f"{scope_of(call)}/providers/{kind}/{call.name}"


def scope_exists(call: Call) -> None:
    """Check that the scope is the subscription, or an existing resource in it."""
    scope = folded(scope_of(call))
    subscription = folded(f"/subscriptions/{call.settings.account}")
    if scope == subscription:
        return
    if not any(folded(text) == scope for record in call.world for _, text in (record.key, *record.known_by)):
        raise refused(
            "ResourceNotFound",
            f"The Resource '{scope_of(call)}' was not found.",
            "scope must name an existing resource, group or subscription",
            404,
        )
