"""Virtual machines."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.simcloud.azure.common import find, plain_outputs, sole_user, under_group
from sandbox.simcloud.azure.disks import DISK, ZONAL
from sandbox.simcloud.azure.identities import HAS_IDENTITIES, identities_match, identity
from sandbox.simcloud.azure.images import images_exist
from sandbox.simcloud.azure.interfaces import INTERFACE
from sandbox.simcloud.azure.machines import (
    can_log_in,
    custom_data_fits,
    disks_are_possible,
    encrypted_by,
    known_size,
    sort_is_whole,
    takes_accelerated,
)
from sandbox.simcloud.azure.placement import PROXIMITY, RESERVATIONS
from sandbox.simcloud.azure.quotas import cores_fit
from sandbox.simcloud.azure.registrations import may_encrypt_at_host
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.identifiers import digest, guid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Naming, Place, Reference, ResourceType
from sandbox.simcloud.values import Properties, at

MACHINE = "azure-native:compute:VirtualMachine"

_SIZE = "hardwareProfile.vmSize"
_INTERFACES = "networkProfile.networkInterfaces[].id"
_DISKS = "storageProfile.dataDisks[].managedDisk.id"


def _places(call: Call) -> Iterable[Place]:
    for zone in list(at(call.inputs, "zones[]")) or [None]:
        yield Place("azure", call.region, str(zone) if zone else None, call.text(_SIZE) or None)


def _is_in_one_zone(call: Call) -> None:
    zones = list(at(call.inputs, "zones[]"))
    if len(zones) > 1:
        raise refused(BAD_REQUEST, f"VM {call.id} has the zones {', '.join(zones)}; it can be in one.", "choose one")


def _disks_are_near(call: Call) -> None:
    zone = next(at(call.inputs, "zones[]"), None)
    ultra = next(at(call.inputs, "additionalCapabilities.ultraSSDEnabled"), False)
    for attached in at(call.inputs, "storageProfile.dataDisks[]"):
        disk = find(call, (DISK,), next(at(attached, "managedDisk.id"), ""))
        if disk is None:
            continue
        sku = str(next(at(disk.inputs, "sku.name"), ""))
        disk_zone = next(at(disk.inputs, "zones[]"), None)
        if disk_zone is not None and disk_zone != zone:
            raise refused(
                BAD_REQUEST,
                f"Disk {disk.id} cannot be attached to the VM because it is not in the same zone as the VM. VM zone: "
                f"'{zone or ''}'. Disk zone: '{disk_zone}'.",
                f"set zones of both to {disk_zone}",
            )
        if sku == "UltraSSD_LRS" and not ultra:
            raise refused(
                "InvalidParameter",
                "StorageAccountType 'UltraSSD_LRS' can be used only when additionalCapabilities.ultraSSDEnabled is set.",
                "set it to true",
            )
        if sku in ZONAL and attached.get("caching") not in (None, "None"):
            raise refused(
                "InvalidParameter",
                f"Disk {disk.id} of account type {sku} supports the caching None only.",
                f"caching is {attached['caching']}",
            )


def _interfaces_are_possible(call: Call) -> None:
    listed = list(at(call.inputs, "networkProfile.networkInterfaces[]"))
    primary = [entry for entry in listed if entry.get("primary")]
    if len(listed) > 1 and len(primary) != 1:
        raise refused(
            "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
            f"Virtual machine {call.id} must have one network interface set as the primary.",
            f"{len(primary)} of {len(listed)} are",
        )
    size = known_size(call.text(_SIZE))
    most = size.type.nics if size and size.type else None
    if most is not None and len(listed) > most:
        raise refused(
            "NetworkInterfaceCountExceeded",
            f"The number of network interfaces for virtual machine {call.id} exceeds the maximum allowed for the virtual "
            f"machine size {call.text(_SIZE)}. The number of network interfaces is {len(listed)} and the maximum allowed "
            f"is {most}.",
            "choose a larger size",
        )
    for entry in listed:
        interface = find(call, (INTERFACE,), entry.get("id"))
        takes_accelerated(
            call, call.text(_SIZE), bool(interface and interface.inputs.get("enableAcceleratedNetworking"))
        )


def _storage(call: Call) -> Properties:
    """Return the storage profile with a name for the OS disk, which outlives the machine unless its deleteOption is Delete."""
    given = call.inputs.get("storageProfile") or {}
    disk = given.get("osDisk") or {}
    name = disk.get("name") or f"{call.name}_OsDisk_1_{digest(call.id)[:32]}"
    disks = call.id.rpartition("/virtualMachines/")[0] + f"/disks/{name}"
    managed = {"storageAccountType": "Standard_LRS", **(disk.get("managedDisk") or {}), "id": disks}
    return {**given, "osDisk": {"deleteOption": "Detach", **disk, "name": name, "managedDisk": managed}}


_machine = ResourceType(
    token=MACHINE,
    noun="VirtualMachine",
    identify=under_group("Microsoft.Compute/virtualMachines"),
    outputs=plain_outputs(
        "Microsoft.Compute/virtualMachines",
        provisioningState=lambda _: "Succeeded",
        vmId=lambda call: guid(f"{call.id} vm"),
        timeCreated=lambda _: "2026-01-01T00:00:00+00:00",
        identity=identity,
        storageProfile=_storage,
    ),
    naming=Naming(
        "vmName",
        re.compile(r"[a-zA-Z0-9]([\w.-]*[\w-])?"),
        64,
        "It may have letters, digits, '.', '_' and '-', and must not end with '.'.",
    ),
    where=("location",),
    replace_on=("resourceGroupName", "vmName"),
    # The API answers changes of these with PropertyChangeNotAllowed.
    fixed=(
        *("zones", "availabilitySet", "priority", "extendedLocation", "platformFaultDomain"),
        *("osProfile.computerName", "osProfile.adminUsername", "osProfile.customData"),
        *("osProfile.linuxConfiguration.ssh", "osProfile.linuxConfiguration.disablePasswordAuthentication"),
        *("storageProfile.imageReference", "storageProfile.osDisk.name", "storageProfile.osDisk.createOption"),
    ),
    references=(
        IN_GROUP,
        HAS_IDENTITIES,
        Reference(_INTERFACES, (INTERFACE,)),
        Reference(_DISKS, (DISK,)),
        *encrypted_by(""),
        Reference("proximityPlacementGroup.id", (PROXIMITY,)),
        Reference("capacityReservation.capacityReservationGroup.id", (RESERVATIONS,), optional=True),
    ),
    refuse=(
        offered(_places),
        _is_in_one_zone,
        identities_match,
        custom_data_fits(""),
        can_log_in(""),
        sort_is_whole(""),
        may_encrypt_at_host(""),
        disks_are_possible("", _SIZE),
        _disks_are_near,
        sole_user(
            _DISKS,
            "ConflictingUserInput",
            "Disk '{value}' cannot be attached as the disk is already owned by VM '{user}'.",
        ),
        _interfaces_are_possible,
        sole_user(
            _INTERFACES,
            "NicInUse",
            "Network Interface {value} is used by existing resource {user}. In order to use it, it must be dissociated "
            "from the resource.",
        ),
        images_exist,
        cores_fit,
    ),
)

TYPES = (_machine,)
