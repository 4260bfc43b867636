"""Scale sets of virtual machines."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.simcloud.azure.addresses import SUBNET
from sandbox.simcloud.azure.common import find, folded, outputs, section, under_group
from sandbox.simcloud.azure.identities import HAS_IDENTITIES, identities_match, identity
from sandbox.simcloud.azure.images import images_exist
from sandbox.simcloud.azure.load_balancing import LOAD_BALANCER
from sandbox.simcloud.azure.machines import (
    can_log_in,
    custom_data_fits,
    disks_are_possible,
    encrypted_by,
    sort_is_whole,
    takes_accelerated,
)
from sandbox.simcloud.azure.placement import PROXIMITY, RESERVATIONS
from sandbox.simcloud.azure.quotas import cores_fit
from sandbox.simcloud.azure.registrations import may_encrypt_at_host
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.security_groups import SECURITY_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Naming, Place, Reference, ResourceType
from sandbox.simcloud.values import at

SCALE_SET = "azure-native:compute:VirtualMachineScaleSet"

_PROFILE = "virtualMachineProfile."
_INTERFACES = f"{_PROFILE}networkProfile.networkInterfaceConfigurations[]"
_POOLS = f"{_INTERFACES}.ipConfigurations[].loadBalancerBackendAddressPools[].id"
_PROBE = f"{_PROFILE}networkProfile.healthProbe.id"
_HEALTH = ("ApplicationHealthLinux", "ApplicationHealthWindows")
_MODES = ("Manual", "Automatic", "Rolling")
_MOST, _MOST_IN_ONE_GROUP = 1000, 100


def _places(call: Call) -> Iterable[Place]:
    machine = call.text("sku.name") or None
    for zone in list(at(call.inputs, "zones[]")) or [None]:
        yield Place("azure", call.region, str(zone) if zone else None, machine)


def _is_flexible(call: Call) -> bool:
    return call.text("orchestrationMode") == "Flexible"


def _upgrades(call: Call) -> None:
    mode = call.text("upgradePolicy.mode")
    if next(at(call.inputs, f"{_PROFILE}osProfile"), None) and not _is_flexible(call) and mode not in _MODES:
        raise refused(
            "InvalidParameter",
            "Required parameter 'upgradePolicy' is missing (null)."
            if not mode
            else f"The upgrade mode {mode} is invalid.",
            f"set upgradePolicy.mode to one of {', '.join(_MODES)}",
        )
    extensions = at(call.inputs, f"{_PROFILE}extensionProfile.extensions[].type")
    is_watched = bool(call.text(_PROBE)) or any(kind in _HEALTH for kind in extensions)
    features = {
        "Rolling Upgrade mode is": mode == "Rolling",
        "Automatic OS Upgrade is": next(
            at(call.inputs, "upgradePolicy.automaticOSUpgradePolicy.enableAutomaticOSUpgrade"), False
        ),
        "Automatic repairs": next(at(call.inputs, "automaticRepairsPolicy.enabled"), False),
    }
    for feature, is_enabled in features.items():
        if is_enabled and not is_watched:
            raise refused(
                BAD_REQUEST,
                f"{feature} not supported for this Virtual Machine Scale Set because a health probe or health extension was "
                "not provided.",
                f"set {_PROBE}, or add the extension {_HEALTH[0]}",
            )


def _batches(call: Call) -> None:
    policy = section(call, "upgradePolicy.rollingUpgradePolicy")
    for name in ("maxBatchInstancePercent", "maxUnhealthyInstancePercent", "maxUnhealthyUpgradedInstancePercent"):
        lowest = 0 if name == "maxUnhealthyUpgradedInstancePercent" else 5
        percent = policy.get(name)
        if percent is not None and not lowest <= int(percent) <= 100:
            raise refused("InvalidParameter", f"The value {percent} of {name} is out of range.", f"{lowest} to 100")
    if int(policy.get("maxBatchInstancePercent") or 20) > int(policy.get("maxUnhealthyInstancePercent") or 20):
        raise refused(
            "InvalidParameter",
            "maxUnhealthyInstancePercent must be at least maxBatchInstancePercent: the machines of a batch are unhealthy "
            "while they are upgraded.",
            "both are 20 if they are left out",
        )


def _probe_is_active(call: Call) -> None:
    probe = call.text(_PROBE)
    balancer = find(call, (LOAD_BALANCER,), probe) if probe else None
    if balancer is None:
        return
    pools = {folded(text) for text in at(call.inputs, _POOLS)}
    for rule in at(balancer.inputs, "loadBalancingRules[]"):
        sends_to = {
            folded(text) for path in ("backendAddressPool.id", "backendAddressPools[].id") for text in at(rule, path)
        }
        if folded(next(at(rule, "probe.id"), "")) == folded(probe) and sends_to & pools:
            return
    raise refused(
        "CannotUseInactiveHealthProbe",
        f"VM scale set {call.id} cannot use probe {probe} as a HealthProbe because load balancing rules that send traffic "
        "to this scale set's IPs do not use this probe. Ensure the probe is actively used for load balancing rules.",
        "use the probe in a load-balancing rule whose pool contains the scale set",
    )


def _orchestration(call: Call) -> None:
    if not _is_flexible(call):
        return
    missing = [name for name in ("platformFaultDomainCount",) if call.inputs.get(name) is None]
    if next(at(call.inputs, _INTERFACES), None) and not call.text(f"{_PROFILE}networkProfile.networkApiVersion"):
        missing.append(f"{_PROFILE}networkProfile.networkApiVersion")
    if missing:
        raise refused(
            "InvalidParameter", f"A scale set with flexible orchestration must have {' and '.join(missing)}.", "set it"
        )
    if call.inputs.get("singlePlacementGroup"):
        raise refused(
            "InvalidParameter",
            "The value of parameter singlePlacementGroup is invalid: flexible orchestration has no single group.",
            "leave it out",
        )


def _size(call: Call) -> None:
    number = int(next(at(call.inputs, "sku.capacity"), 0))
    is_one_group = call.inputs.get("singlePlacementGroup", True) is not False and not _is_flexible(call)
    most = _MOST_IN_ONE_GROUP if is_one_group else _MOST
    if number > most:
        raise refused(
            "InvalidParameter",
            f"The specified number of virtual machines {number} exceeds the limit {most} of scale set {call.id}.",
            "set singlePlacementGroup to false" if is_one_group else "create a second scale set",
        )


def _zones_stay(call: Call) -> None:
    """Refuse to remove zones; they can only be added ("Update scale set to add availability zones")."""
    before = set(at(call.old.inputs, "zones[]")) if call.old else set()
    gone = before - set(at(call.inputs, "zones[]"))
    if gone:
        raise refused(
            "PropertyChangeNotAllowed",
            "Changing property 'zones' is not allowed: zones cannot be removed.",
            f"the update removes {', '.join(sorted(gone))}",
            409,
        )


def _interfaces(call: Call) -> None:
    listed = list(at(call.inputs, _INTERFACES))
    primary = [interface for interface in listed if interface.get("primary")]
    if listed and len(primary) != 1:
        raise refused(
            "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
            f"Scale set {call.id} must have one network interface set as the primary.",
            f"{len(primary)} of {len(listed)} are",
        )
    for interface in listed:
        takes_accelerated(call, call.text("sku.name"), bool(interface.get("enableAcceleratedNetworking")))


def _placement(call: Call) -> None:
    zones = list(at(call.inputs, "zones[]"))
    if call.text("proximityPlacementGroup.id") and len(zones) > 1:
        raise refused(
            BAD_REQUEST,
            f"Scale set {call.id} is in zones {', '.join(zones)} and in a proximity placement group, which is in one zone.",
            "use one zone",
        )


_scale_set = ResourceType(
    token=SCALE_SET,
    noun="VirtualMachineScaleSet",
    identify=under_group("Microsoft.Compute/virtualMachineScaleSets"),
    outputs=outputs(
        "Microsoft.Compute/virtualMachineScaleSets",
        uniqueId=lambda call: guid(call.id + "unique"),
        timeCreated=lambda _: "2026-01-01T00:00:00+00:00",
        identity=identity,
    ),
    naming=Naming(
        "vmScaleSetName",
        re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"),
        64,
        "It may have letters, digits and hyphens, and must begin and end with a letter or digit.",
    ),
    where=("location",),
    replace_on=("resourceGroupName", "vmScaleSetName", "extendedLocation"),
    # Properties that, according to Microsoft's page on changing scale sets, can only be set at creation.
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
        HAS_IDENTITIES,
        Reference(f"{_INTERFACES}.ipConfigurations[].subnet.id", (SUBNET,)),
        Reference(f"{_INTERFACES}.networkSecurityGroup.id", (SECURITY_GROUP,)),
        Reference(_POOLS, (LOAD_BALANCER,)),
        Reference(_PROBE, (LOAD_BALANCER,)),
        *encrypted_by(_PROFILE),
        Reference("proximityPlacementGroup.id", (PROXIMITY,)),
        Reference(
            f"{_PROFILE}capacityReservation.capacityReservationGroup.id", (RESERVATIONS,), holds=False, optional=True
        ),
    ),
    refuse=(
        offered(_places),
        _orchestration,
        _upgrades,
        _batches,
        _probe_is_active,
        _size,
        _zones_stay,
        _interfaces,
        _placement,
        identities_match,
        custom_data_fits(_PROFILE),
        can_log_in(_PROFILE),
        sort_is_whole(_PROFILE),
        may_encrypt_at_host(_PROFILE),
        disks_are_possible(_PROFILE, "sku.name"),
        images_exist,
        cores_fit,
    ),
)

TYPES = (_scale_set,)
