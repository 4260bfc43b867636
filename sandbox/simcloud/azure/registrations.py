"""Registrations: a subscription uses the resource providers and features that are registered.

Sources: "Resolve errors for resource provider registration", and "Enable end-to-end encryption using encryption at host".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import at

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


def may_encrypt_at_host(at_: str) -> Callable[[Call], None]:
    """Return a rule: encryption at host needs its feature. at_: prefix of the path.

    Azure refuses the value false too (Azure/bicep-registry-modules#2374). It names the property of a machine for scale sets too
    (MicrosoftDocs/azure-docs#68028).
    """

    def rule(call: Call) -> None:
        is_given = any(True for _ in at(call.inputs, f"{at_}securityProfile.encryptionAtHost"))
        if is_given and not call.offers.services("azure", "Microsoft.Compute/EncryptionAtHost"):
            raise refused(
                "InvalidParameter",
                "The property 'securityProfile.encryptionAtHost' is not valid because the "
                "'Microsoft.Compute/EncryptionAtHost' feature is not enabled for this subscription.",
                "az feature register --namespace Microsoft.Compute --name EncryptionAtHost",
            )

    return rule


def _needed(token: str) -> Iterator[str]:
    if own := _NAMESPACES.get(token.split(":")[1]):
        yield own
    if more := _MORE.get(token):
        yield more
