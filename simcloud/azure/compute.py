"""Machines of Azure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from simcloud.azure.common import outputs, under_group
from simcloud.azure.network import SECURITY_GROUP, SUBNET
from simcloud.azure.resources import IN_GROUP
from simcloud.identifiers import guid
from simcloud.refusals import offered
from simcloud.rules import Call, Naming, Place, Reference, ResourceType
from simcloud.values import at

_INTERFACES = "virtualMachineProfile.networkProfile.networkInterfaceConfigurations[]"


def _places(call: Call) -> Iterable[Place]:
    machine = call.text("sku.name") or None
    for zone in list(at(call.inputs, "zones[]")) or [None]:
        yield Place("azure", call.region, str(zone) if zone else None, machine)


_scale_set = ResourceType(
    token="azure-native:compute:VirtualMachineScaleSet",
    noun="VirtualMachineScaleSet",
    identify=under_group("Microsoft.Compute/virtualMachineScaleSets"),
    outputs=outputs(
        "Microsoft.Compute/virtualMachineScaleSets",
        uniqueId=lambda call: guid(call.id + "unique"),
        timeCreated=lambda _: "2026-01-01T00:00:00+00:00",
    ),
    naming=Naming(
        "vmScaleSetName",
        re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"),
        64,
        "It may have letters, digits and hyphens, and must begin and end with a letter or digit.",
    ),
    where=("location",),
    replace_on=("resourceGroupName", "vmScaleSetName", "extendedLocation"),
    # The properties that Microsoft's page on changing scale sets says can be set at creation only.
    fixed=(
        *("orchestrationMode", "platformFaultDomainCount", "virtualMachineProfile.priority"),
        *("virtualMachineProfile.osProfile.adminUsername", "virtualMachineProfile.osProfile.computerNamePrefix"),
        "virtualMachineProfile.storageProfile.imageReference.publisher",
        "virtualMachineProfile.storageProfile.imageReference.offer",
        "virtualMachineProfile.storageProfile.osDisk.managedDisk.storageAccountType",
    ),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference(f"{_INTERFACES}.ipConfigurations[].subnet.id", (SUBNET,)),
        Reference(f"{_INTERFACES}.networkSecurityGroup.id", (SECURITY_GROUP,)),
    ),
    refuse=(offered(_places),),
)

TYPES = (_scale_set,)
