"""Placement of machines: proximity placement groups and capacity reservation groups."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.common import plain_outputs, under_group
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Naming, Place, Reason, ResourceType, Saying
from sandbox.simcloud.values import at

PROXIMITY = "azure-native:compute:ProximityPlacementGroup"
RESERVATIONS = "azure-native:compute:CapacityReservationGroup"

_NAME = re.compile(r"[a-zA-Z0-9]([\w.-]*\w)?")
_WORDS = "It may have letters, digits, '.', '_' and '-'."


def _places(call: Call) -> list[Place]:
    return [Place("azure", call.region, str(zone)) for zone in at(call.inputs, "zones[]")]


def _one_zone_with_intent(call: Call) -> None:
    """Check that a zone comes with intended sizes ("Proximity placement groups")."""
    zones = list(at(call.inputs, "zones[]"))
    if len(zones) > 1:
        raise refused(BAD_REQUEST, f"{call.id} has the zones {', '.join(zones)}; it can be in one.", "choose one")
    if zones and not list(at(call.inputs, "intent.vmSizes[]")):
        raise refused(
            BAD_REQUEST, f"{call.id} has a zone and no intent.vmSizes.", "set intent.vmSizes, or leave out zones"
        )


_proximity = ResourceType(
    token=PROXIMITY,
    noun="Proximity Placement Group",
    identify=under_group("Microsoft.Compute/proximityPlacementGroups"),
    outputs=plain_outputs("Microsoft.Compute/proximityPlacementGroups"),
    naming=Naming("proximityPlacementGroupName", _NAME, 80, _WORDS),
    where=("location",),
    replace_on=("resourceGroupName", "proximityPlacementGroupName"),
    fixed=("zones", "proximityPlacementGroupType"),
    references=(IN_GROUP,),
    refuse=(offered(_places), _one_zone_with_intent),
    says={
        Reason.IN_USE: Saying(
            'Status=409 Code="OperationNotAllowed" Message="Proximity Placement Group \'{value}\' cannot be deleted. '
            'Before deleting a Proximity Placement Group please ensure that it does not contain any resource."',
            "delete first: {users}",
        )
    },
)

_reservations = ResourceType(
    token=RESERVATIONS,
    noun="Capacity Reservation Group",
    identify=under_group("Microsoft.Compute/capacityReservationGroups"),
    outputs=plain_outputs("Microsoft.Compute/capacityReservationGroups"),
    naming=Naming("capacityReservationGroupName", _NAME, 80, _WORDS),
    where=("location",),
    replace_on=("resourceGroupName", "capacityReservationGroupName"),
    fixed=("zones",),
    references=(IN_GROUP,),
    refuse=(offered(_places),),
)

TYPES = (_proximity, _reservations)
