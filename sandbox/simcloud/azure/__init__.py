"""Azure: the behaviour of the Resource Manager and of the provider `azure-native`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sandbox.simcloud.azure import (
    addresses,
    disks,
    flow_logs,
    identities,
    interfaces,
    key_vault,
    limits,
    load_balancing,
    locks,
    nat,
    network,
    placement,
    private_dns,
    private_endpoints,
    registrations,
    resources,
    role_definitions,
    scale_sets,
    security_groups,
    storage,
    virtual_machines,
    vpn,
)
from sandbox.simcloud.azure.common import generic_type, group_id
from sandbox.simcloud.azure.functions import FUNCTIONS
from sandbox.simcloud.azure.places import known_location
from sandbox.simcloud.azure.tagging import tagged
from sandbox.simcloud.azure.words import SAYS
from sandbox.simcloud.limits import limited
from sandbox.simcloud.rules import Call, Cloud, ResourceType, Settings
from sandbox.simcloud.values import Value

_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def _configure(inputs: Mapping[str, Value]) -> Settings:
    return Settings(account=inputs.get("subscriptionId") or _SUBSCRIPTION, region=inputs.get("location") or "")


def _place_of(call: Call, _: str) -> str | None:
    """Return the provider's location, otherwise that of the resource group if it is known."""
    if call.settings.region or not call.text("resourceGroupName"):
        return call.settings.region or None
    name = CLOUD.folded(group_id(call, call.text("resourceGroupName")))
    return next((group.inputs["location"] for group in call.world.find((resources.GROUP,), name)), None)


def _region_of(call: Call) -> str:
    """Return the resource's own location, otherwise that of its virtual network."""
    if "location" in call.type.where:
        return call.text("location").replace(" ", "").lower()
    parent = CLOUD.folded(network.network_id(call, call.text("virtualNetworkName")))
    return next((record.region for record in call.world.find((network.NETWORK,), parent)), "")


_MODULES = (
    *(resources, addresses, nat, security_groups, network, load_balancing, interfaces, private_dns, private_endpoints),
    *(
        flow_logs,
        vpn,
        identities,
        role_definitions,
        locks,
        key_vault,
        disks,
        placement,
        virtual_machines,
        scale_sets,
        storage,
    ),
)

# The provider deletes these through the vault's own API, which ignores locks.
_UNLOCKABLE = (key_vault.SECRET, key_vault.KEY)


def _ruled(type_: ResourceType) -> ResourceType:
    """Return the type with its limits, and with the rules for registrations, locks and tags, which apply to every type."""
    deletion = () if type_.token in _UNLOCKABLE else (locks.unlocked,)
    rules = (
        registrations.registered,
        locks.writable,
        known_location,
        *type_.refuse,
        tagged,
    )
    ruled = replace(type_, refuse=rules, refuse_deletion=(*deletion, *type_.refuse_deletion))
    return limited(ruled, limits.LIMITS)


CLOUD = Cloud(
    package="azure-native",
    name="azure",
    types={type_.token: _ruled(type_) for module in _MODULES for type_ in module.TYPES},
    unruled=lambda token: _ruled(generic_type(token)),
    says=SAYS,
    configure=_configure,
    place_of=_place_of,
    place_missing={},
    region_of=_region_of,
    functions=FUNCTIONS,
    refers_by=(),
    suffix=("", 8),
    # Principals of identities; URIs of vaults, secrets and keys.
    reshaped=("identity", "properties"),
    has_trees=True,
    folds_case=True,
)
