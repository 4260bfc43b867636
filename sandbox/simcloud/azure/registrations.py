"""Resource providers: a subscription uses those that are registered ("Resolve errors for resource provider registration")."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call

# Part of a type's token -> namespace. Every subscription has those of groups and roles ("Azure resource providers and types").
_NAMESPACES = {
    "compute": "Microsoft.Compute",
    "keyvault": "Microsoft.KeyVault",
    "managedidentity": "Microsoft.ManagedIdentity",
    "network": "Microsoft.Network",
    "privatedns": "Microsoft.Network",
    "storage": "Microsoft.Storage",
}
# "Manage virtual network flow logs", prerequisites.
_MORE = {"azure-native:network:FlowLog": "Microsoft.Insights"}


def registered(call: Call) -> None:
    """Refuse a type whose namespace is not registered."""
    for namespace in _needed(call.type.token):
        if not call.offers.services("azure", namespace):
            raise refused(
                "MissingSubscriptionRegistration",
                f"The subscription is not registered to use namespace '{namespace}'. See https://aka.ms/rps-not-found "
                "for how to register subscriptions.",
                f"az provider register --namespace {namespace}",
                409,
            )


def _needed(token: str) -> Iterator[str]:
    if own := _NAMESPACES.get(token.split(":")[1]):
        yield own
    if more := _MORE.get(token):
        yield more
