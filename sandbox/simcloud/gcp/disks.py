"""Disks of Google Cloud, and their attachments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.gcp.common import REGIONAL, ZONAL, bare, compute, kept, last, numbered
from sandbox.simcloud.gcp.kms import by_key, usable
from sandbox.simcloud.gcp.tokens import DISK, INSTANCE, POLICY
from sandbox.simcloud.gcp.words import PREVENTED, in_use, invalid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reference, ResourceType, Rule
from sandbox.simcloud.values import Value, at
from sandbox.simcloud.world import Record

ATTACHED = "gcp:compute/attachedDisk:AttachedDisk"
KEY_DENIED = (
    "googleapi: Error 400: Cloud KMS error when using key {key}: Permission '{permission}' denied on resource '{key}' "
    "(or it may not exist)., kmsPermissionDenied"
)
COMPUTE_AGENT = "compute-system.iam.gserviceaccount.com"

_KEY = "diskEncryptionKey.kmsKeySelfLink"
# Types without figures in the catalogue ("About Google Cloud Hyperdisk").
_OTHER_TYPES = ("hyperdisk-throughput", "hyperdisk-ml", "hyperdisk-balanced-high-availability")
_WITH_IOPS = ("pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-balanced-high-availability")
# "About Hyperdisk Balanced": minimum 3,000 IOPS, or 500 per GiB if that is less; maximum 500 per GiB.
_BALANCED, _IOPS_PER_GIB, _LEAST_IOPS = "hyperdisk-balanced", 500, 3000


def _type(call: Call) -> str:
    return last(call.text("type")) or "pd-standard"


def _shrinks(old: Value, new: Value) -> bool:
    return bool(old and new and int(new) < int(old))


def _places(call: Call) -> Iterable[Place]:
    return [Place("gcp", call.region, last(call.text("zone")))]


def _limits(call: Call) -> None:
    kind, size = _type(call), int(call.inputs.get("size") or 0)
    catalogue = of(Cloud.GCP).disks
    if kind == "local-nvme" or kind not in (*catalogue, *_OTHER_TYPES):
        raise invalid(
            "type", kind, "The referenced diskType resource cannot be found.",
            f"use one of {', '.join(sorted({*catalogue, *_OTHER_TYPES} - {'local-nvme'}))}",
        )  # fmt: skip
    limits = catalogue.get(kind)
    if limits and limits.max_gib and size > limits.max_gib:
        raise invalid(
            "sizeGb", str(size), f"Disk size cannot be larger than {limits.max_gib} GB.", "use more than one disk"
        )
    _performance(call, kind, size)


def _performance(call: Call, kind: str, size: int) -> None:
    limits = of(Cloud.GCP).disks.get(kind)
    iops, throughput = (int(call.inputs.get(name) or 0) for name in ("provisionedIops", "provisionedThroughput"))
    if iops and kind not in _WITH_IOPS:
        raise invalid("provisionedIops", str(iops), f"Not supported by disk type {kind}.", "leave it out")
    most = limits.max_iops if limits else None
    least = 0
    if kind == _BALANCED and size:
        most = min(most or iops, _IOPS_PER_GIB * size)
        least = min(_LEAST_IOPS, _IOPS_PER_GIB * size)
    if iops and not least <= iops <= (most or iops):
        raise invalid(
            "provisionedIops", str(iops), f"A {kind} disk of {size} GB takes {least} to {most} IOPS.",
            "change the size or the IOPS",
        )  # fmt: skip
    if throughput and limits and limits.max_mb_per_s and throughput > limits.max_mb_per_s:
        raise invalid(
            "provisionedThroughput",
            str(throughput),
            f"A {kind} disk has at most {limits.max_mb_per_s} MB/s.",
            "lower it",
        )


def disk_named(call: Call, text: str) -> str:
    """Return the ID of a disk given by ID, link, or name in the zone."""
    if "/" in text:
        return bare(call, text)
    return f"projects/{call.text('project') or call.settings.account}/zones/{zone_of(call)}/disks/{text}"


def zone_of(call: Call) -> str:
    """Return the zone as given, or that of the instance that the resource refers to."""
    match = re.search(r"zones/([^/]+)/", call.text("instance"))
    return last(call.text("zone")) or (match[1] if match else call.settings.zone)


def of_disk(path: str) -> Reference:
    """Return a reference to a disk."""
    return Reference(path, (DISK,), resolve=disk_named)


def free_disks(*paths: str) -> Rule:
    """Return a rule: disks at the paths are in the call's zone, and attached to nothing else."""

    def rule(call: Call) -> None:
        for path in paths:
            for text in at(call.inputs, path):
                for disk in call.world.find((DISK,), disk_named(call, str(text))):
                    _free(call, path, disk)

    return rule


def _free(call: Call, path: str, disk: Record) -> None:
    zone = last(str(disk.inputs["zone"]))
    if zone != zone_of(call):
        raise invalid(
            path,
            disk.id,
            f"The disk is in zone {zone} and the instance in {zone_of(call)}.",
            "both must be in one zone",
        )
    for user in call.world.users(disk):
        if user.type in (INSTANCE, ATTACHED) and user.id != call.id:
            raise in_use(f"The disk resource '{disk.id}'", user.id)


def _attachment_id(call: Call) -> str:
    project = call.text("project")
    return f"projects/{project}/zones/{zone_of(call)}/instances/{last(call.text('instance'))}/{last(call.text('disk'))}"


def _instance_named(call: Call, text: str) -> str:
    if "/" in text:
        return bare(call, text)
    return f"projects/{call.text('project')}/zones/{zone_of(call)}/instances/{text}"


def _instance_zone(call: Call) -> None:
    instance = call.target("instance")
    if instance and last(str(instance.inputs["zone"])) != zone_of(call):
        raise invalid("zone", zone_of(call), f"The instance is in {instance.inputs['zone']}.", "leave the zone out")


def _machine(call: Call) -> Iterable[Place]:
    machine = call.text("specificReservation.instanceProperties.machineType")
    return [Place("gcp", call.region, last(call.text("zone")), machine or None)]


_attached = ResourceType(
    token=ATTACHED,
    noun="attached_disk",
    identify=_attachment_id,
    outputs=lambda call: {
        "zone": zone_of(call),
        "deviceName": call.text("deviceName") or kept(call, "deviceName", lambda: "persistent-disk-1"),
        "mode": call.text("mode") or "READ_WRITE",
    },
    where=("project",),
    replace_on=("disk", "instance", "zone", "deviceName", "mode", "interface"),
    # An instance releases its disks when it is deleted.
    references=(of_disk("disk"), Reference("instance", (INSTANCE,), holds=False, resolve=_instance_named)),
    refuse=(_instance_zone, free_disks("disk")),
    protected_by={"deletionPolicy": "PREVENT"},
    says=PREVENTED,
)

TYPES = (
    compute(
        "Disk",
        "disk",
        "disks",
        where=ZONAL,
        computed={"diskId": numbered, "type": lambda _: "pd-standard", "physicalBlockSizeBytes": lambda _: 4096},
        replace_on=(
            *("architecture", "asyncPrimaryDisk", "description", "diskEncryptionKey", "enableConfidentialCompute"),
            *("guestOsFeatures", "image", "licenses", "params", "physicalBlockSizeBytes", "snapshot", "sourceDisk"),
            *("sourceImageEncryptionKey", "sourceInstantSnapshot", "sourceSnapshotEncryptionKey"),
            *("sourceStorageObject", "storagePool", "type"),
        ),
        replace_if={"size": _shrinks},
        references=(by_key(_KEY), Reference("resourcePolicies[]", (POLICY,), resolve=bare)),
        refuse=(offered(_places), _limits, usable(_KEY, COMPUTE_AGENT, KEY_DENIED)),
    ),
    _attached,
    compute(
        "ResourcePolicy",
        "resource_policy",
        "resourcePolicies",
        where=REGIONAL,
        replace_on=(
            *("diskConsistencyGroupPolicy.enabled", "groupPlacementPolicy.gpuTopology", "workloadPolicy.type"),
            *("workloadPolicy.acceleratorTopology", "workloadPolicy.maxTopologyDistance"),
        ),
    ),
    compute(
        "DiskResourcePolicyAttachment",
        "disk_resource_policy_attachment",
        "",
        identify=lambda call: "/".join(
            (call.text("project"), zone_of(call), last(call.text("disk")), last(call.text("name")))
        ),
        where=ZONAL,
        replace_on=("disk",),
        references=(of_disk("disk"), Reference("name", (POLICY,), resolve=bare)),
    ),
    compute(
        "Reservation",
        "reservation",
        "reservations",
        where=ZONAL,
        computed={"status": lambda _: "READY"},
        replace_on=(
            *("specificReservation.instanceProperties", "deleteAfterDuration", "deleteAtTime", "description", "params"),
            *("reservationSharingPolicy.serviceShareType", "shareSettings.shareType", "specificReservationRequired"),
        ),
        refuse=(offered(_machine),),
    ),
)
