"""Azure, as the Resource Manager and the provider `azure-native` behave."""

from __future__ import annotations

from collections.abc import Mapping

from simcloud.azure import compute, network, resources
from simcloud.azure.common import generic_type, group_id
from simcloud.azure.functions import FUNCTIONS
from simcloud.azure.words import SAYS
from simcloud.rules import Call, Cloud, Settings
from simcloud.values import Value

_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def _configure(inputs: Mapping[str, Value]) -> Settings:
    return Settings(account=inputs.get("subscriptionId") or _SUBSCRIPTION, region=inputs.get("location") or "")


def _place_of(call: Call, _: str) -> str | None:
    """The provider's location, else that of the resource group, as far as it is known."""
    if call.settings.region or not call.text("resourceGroupName"):
        return call.settings.region or None
    name = CLOUD.folded(group_id(call, call.text("resourceGroupName")))
    return next((group.inputs["location"] for group in call.world.find((resources.GROUP,), name)), None)


def _region_of(call: Call) -> str:
    """What lies in a network is where the network is."""
    if "location" in call.type.where:
        return call.text("location").replace(" ", "").lower()
    parent = CLOUD.folded(network.network_id(call, call.text("virtualNetworkName")))
    return next((found.region for found in call.world.find((network.NETWORK,), parent)), "")


CLOUD = Cloud(
    package="azure-native",
    name="azure",
    types={type_.token: type_ for type_ in (*resources.TYPES, *network.TYPES, *compute.TYPES)},
    unruled=generic_type,
    says=SAYS,
    configure=_configure,
    place_of=_place_of,
    place_missing={},
    region_of=_region_of,
    functions=FUNCTIONS,
    refers_by=(),
    suffix=("", 8),
    has_trees=True,
    folds_case=True,
)
