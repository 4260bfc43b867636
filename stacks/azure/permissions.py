"""Permissions in Azure for `up`, `up --dry-run` and `destroy`, as data: each type of resource -> its operations.

The operations are from "Azure permissions", by resource provider (pages of 2026, and Microsoft's built-in roles of August
2026). They form a role for operators, which is in docs/reference/azure.md; a test compares it with the stack's
declarations, and another compares the resource providers and features with those that docs/start/azure.md registers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping

from stacks.azure.rights import USE_BLOBS, BuiltIn, id_of_own, only_in


def _all_of(kind: str, *more: str) -> tuple[str, ...]:
    return tuple(f"{kind}/{verb}" for verb in ("read", "write", "delete", *more))


_NETWORK, _COMPUTE = "Microsoft.Network", "Microsoft.Compute"
_VAULTS, _ACCOUNTS = "Microsoft.KeyVault/vaults", "Microsoft.Storage/storageAccounts"
_RIGHTS = "Microsoft.Authorization"

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "azure-native:authorization:ManagementLockByScope": _all_of(f"{_RIGHTS}/locks"),
    "azure-native:authorization:RoleAssignment": _all_of(f"{_RIGHTS}/roleAssignments"),
    "azure-native:authorization:RoleDefinition": _all_of(f"{_RIGHTS}/roleDefinitions"),
    "azure-native:compute:Disk": _all_of(f"{_COMPUTE}/disks"),
    "azure-native:compute:DiskEncryptionSet": _all_of(f"{_COMPUTE}/diskEncryptionSets"),
    "azure-native:compute:ProximityPlacementGroup": _all_of(f"{_COMPUTE}/proximityPlacementGroups"),
    "azure-native:compute:VirtualMachine": _all_of(f"{_COMPUTE}/virtualMachines"),
    "azure-native:compute:VirtualMachineScaleSet": (
        *_all_of(f"{_COMPUTE}/virtualMachineScaleSets"),
        f"{_COMPUTE}/capacityReservationGroups/read",
        f"{_COMPUTE}/capacityReservationGroups/deploy/action",
        f"{_COMPUTE}/galleries/images/versions/read",
        f"{_COMPUTE}/images/read",
    ),
    "azure-native:keyvault:Key": (f"{_VAULTS}/keys/read", f"{_VAULTS}/keys/write"),
    "azure-native:keyvault:Secret": (f"{_VAULTS}/secrets/read", f"{_VAULTS}/secrets/write"),
    "azure-native:keyvault:Vault": (
        *_all_of(_VAULTS, "PrivateEndpointConnectionsApproval/action"),
        "Microsoft.KeyVault/locations/deletedVaults/read",
    ),
    "azure-native:managedidentity:UserAssignedIdentity": _all_of(
        "Microsoft.ManagedIdentity/userAssignedIdentities", "assign/action"
    ),
    "azure-native:network:FlowLog": (
        *_all_of(f"{_NETWORK}/networkWatchers/flowLogs"),
        f"{_NETWORK}/networkWatchers/read",
        f"{_NETWORK}/networkWatchers/configureFlowLog/action",
        f"{_NETWORK}/networkWatchers/queryFlowLogStatus/action",
        # "Azure RBAC permissions for Network Watcher" requires these, and makes no exception for accounts that refuse keys.
        *(f"{_ACCOUNTS}/{call}/action" for call in ("listAccountSas", "listKeys", "listServiceSas")),
    ),
    "azure-native:network:LoadBalancer": _all_of(
        f"{_NETWORK}/loadBalancers", "backendAddressPools/join/action", "probes/join/action"
    ),
    "azure-native:network:LocalNetworkGateway": _all_of(f"{_NETWORK}/localNetworkGateways"),
    "azure-native:network:NatGateway": _all_of(f"{_NETWORK}/natGateways", "join/action"),
    "azure-native:network:NetworkInterface": _all_of(f"{_NETWORK}/networkInterfaces", "join/action"),
    "azure-native:network:NetworkSecurityGroup": _all_of(f"{_NETWORK}/networkSecurityGroups", "join/action"),
    "azure-native:network:PrivateDnsZoneGroup": _all_of(f"{_NETWORK}/privateEndpoints/privateDnsZoneGroups"),
    "azure-native:network:PrivateEndpoint": _all_of(f"{_NETWORK}/privateEndpoints"),
    "azure-native:network:PublicIPAddress": _all_of(f"{_NETWORK}/publicIPAddresses", "join/action"),
    "azure-native:network:VirtualNetwork": (
        *_all_of(f"{_NETWORK}/virtualNetworks", "join/action"),
        *_all_of(f"{_NETWORK}/virtualNetworks/subnets", "join/action"),
    ),
    "azure-native:network:VirtualNetworkGateway": _all_of(f"{_NETWORK}/virtualNetworkGateways"),
    "azure-native:network:VirtualNetworkGatewayConnection": _all_of(f"{_NETWORK}/connections"),
    "azure-native:privatedns:PrivateRecordSet": _all_of(f"{_NETWORK}/privateDnsZones/A"),
    "azure-native:privatedns:PrivateZone": _all_of(f"{_NETWORK}/privateDnsZones", "join/action"),
    "azure-native:privatedns:VirtualNetworkLink": _all_of(f"{_NETWORK}/privateDnsZones/virtualNetworkLinks"),
    "azure-native:resources:ResourceGroup": _all_of("Microsoft.Resources/subscriptions/resourceGroups"),
    "azure-native:storage:BlobContainer": _all_of(f"{_ACCOUNTS}/blobServices/containers"),
    "azure-native:storage:BlobContainerImmutabilityPolicy": _all_of(
        f"{_ACCOUNTS}/blobServices/containers/immutabilityPolicies"
    ),
    "azure-native:storage:BlobServiceProperties": (
        f"{_ACCOUNTS}/blobServices/read",
        f"{_ACCOUNTS}/blobServices/write",
    ),
    "azure-native:storage:ManagementPolicy": _all_of(f"{_ACCOUNTS}/managementPolicies"),
    "azure-native:storage:StorageAccount": _all_of(_ACCOUNTS, "PrivateEndpointConnectionsApproval/action"),
}

GIVEN = ("audit-log-writer", "backup-keeper", "disk-maker", "join-token-writer", "machine-reader", "share-maker")
"""Names of our own roles that a cluster's stack creates and assigns."""

ALWAYS = ("Microsoft.Resources/subscriptions/read",)
"""To find the subscription."""

RECORDS, RECORDS_CONTAINER = USE_BLOBS, "artefacts"
"""Data actions that records need, and the container of each cluster's account in which they are allowed."""

WAITS: Mapping[str, tuple[str, ...]] = {
    "authorization": (),
    "compute": (f"{_COMPUTE}/locations/operations/read", f"{_COMPUTE}/locations/diskOperations/read"),
    "keyvault": ("Microsoft.KeyVault/locations/operationResults/read",),
    "managedidentity": (),
    "network": (f"{_NETWORK}/locations/operations/read", f"{_NETWORK}/locations/operationResults/read"),
    "privatedns": (f"{_NETWORK}/privateDnsOperationStatuses/read", f"{_NETWORK}/privateDnsOperationResults/read"),
    "resources": ("Microsoft.Resources/subscriptions/operationresults/read",),
    "storage": ("Microsoft.Storage/operations/read",),
}
"""Module of types -> what its provider reads until a long operation has ended; none where every request ends at once."""

_REGISTERED = frozenset({"Microsoft.Authorization", "Microsoft.Resources"})
"""Registered in every subscription ("Azure resource providers and types")."""
_ALSO: Mapping[str, tuple[str, ...]] = {"azure-native:network:FlowLog": ("Microsoft.Insights",)}
"""Type -> resource providers that it needs in addition ("Manage virtual network flow logs")."""
FEATURES = ("EncryptionAtHost",)
"""Features of Microsoft.Compute that machines need (`stacks.azure.hosts`). A new subscription has not registered them."""


def only_our_roles(subscription: str, clusters: Iterable[str]) -> str:
    """Return the condition of the operator's own assignment: assign only these clusters' roles, and only to machine identities.

    Form: "Examples to delegate Azure role assignment management with conditions", constrain roles and principal types.
    """
    own = (id_of_own(subscription, cluster, name) for cluster in clusters for name in GIVEN)
    roles = ", ".join(sorted({*(role.value for role in BuiltIn), *own}))

    def clause(action: str, source: str) -> str:
        attribute = f"@{source}[{_RIGHTS}/roleAssignments"
        return (
            f"((!(ActionMatches{{'{_RIGHTS}/roleAssignments/{action}'}})) OR "
            f"({attribute}:RoleDefinitionId] ForAnyOfAnyValues:GuidEquals {{{roles}}} AND "
            f"{attribute}:PrincipalType] ForAnyOfAnyValues:StringEqualsIgnoreCase {{'ServicePrincipal'}}))"
        )

    return f"{clause('write', 'Request')} AND {clause('delete', 'Resource')}"


def operators_role(types: Iterable[str] = tuple(ACTIONS)) -> str:
    """Return a role for the identity that runs menagerie, as `az role definition create --role-definition` takes it."""
    actions = {action for type_ in types for action in (*ACTIONS[type_], *WAITS[type_.split(":")[1]])}
    role = {
        "Name": "Menagerie operator",
        "IsCustom": True,
        "Description": "Creates, changes and deletes clusters. Reads no secrets.",
        "Actions": sorted({*actions, *ALWAYS}),
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": ["/subscriptions/<subscription>"],
    }
    return json.dumps(role, indent=2) + "\n"


def resource_providers(types: Iterable[str] = tuple(ACTIONS)) -> tuple[str, ...]:
    """Return the resource providers that a subscription must register for these types."""
    needed = {action.partition("/")[0] for type_ in types for action in ACTIONS[type_]}
    also = {name for type_ in types for name in _ALSO.get(type_, ())}
    return tuple(sorted((needed | also) - _REGISTERED))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["role", subscription]:
            print(operators_role().replace("<subscription>", subscription), end="")
        case ["records"]:
            print(only_in(RECORDS_CONTAINER))
        case [subscription, *clusters]:
            print(only_our_roles(subscription, clusters))
