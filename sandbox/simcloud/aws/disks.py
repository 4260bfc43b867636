"""Disks of Amazon EBS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.common import ec2, generated_id, others, refused
from sandbox.simcloud.aws.keys import KEY_OF
from sandbox.simcloud.aws.tokens import INSTANCE, VOLUME
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Value

# "CreateVolume" and "Amazon EBS volume types": minimum size and IOPS, and maximum IOPS per GiB.
_LEAST_GIB = {"io1": 4, "io2": 4, "st1": 125, "sc1": 125}
_LEAST_IOPS = {"io1": 100, "io2": 100, "gp3": 3000}
_IOPS_PER_GIB = {"io1": 50, "io2": 1000, "gp3": 500}
_LEAST_MB_PER_S, _MB_PER_S_PER_IOPS = 125, 0.25
_DEVICE = re.compile(r"/dev/(sd|xvd)[a-z]{1,2}\d{0,2}|xvd[a-z]{1,2}")


def check_disk(disk: Mapping[str, Value], size: str) -> None:
    """Refuse a disk that AWS does not offer. size: the property with its size in GiB."""
    kind = str(disk.get("type") or disk.get("volumeType") or "gp2")
    limits = of(Cloud.AWS).disks.get(kind)
    if limits is None and kind != "standard":
        raise refused(
            "InvalidParameterValue", f"Invalid value '{kind}' for VolumeType.", "see the types of EBS volumes"
        )
    gib, iops, throughput = (disk.get(name) for name in (size, "iops", "throughput"))
    largest = limits.max_gib if limits else None
    if gib is not None and (gib < _LEAST_GIB.get(kind, 1) or gib > (largest or gib)):
        raise refused(
            "InvalidParameterValue",
            f"Volume of {gib:.0f}GiB is too {'small' if gib < _LEAST_GIB.get(kind, 1) else 'large'} for volume type "
            f"{kind}",
            f"it may have {_LEAST_GIB.get(kind, 1)} to {largest} GiB",
        )
    _check_iops(kind, gib, iops)
    _check_throughput(kind, iops, throughput)


def _check_iops(kind: str, gib: float | None, iops: float | None) -> None:
    if iops is None:
        if kind in ("io1", "io2"):
            raise refused(
                "InvalidParameterCombination", f"The parameter iops must be specified for {kind} volumes.", "set iops"
            )
        return
    if kind not in _IOPS_PER_GIB:
        raise refused(
            "InvalidParameterCombination",
            f"The parameter iops is not supported for {kind} volumes.",
            "leave iops out, or choose gp3 or io2",
        )
    most = of(Cloud.AWS).disks[kind].max_iops or iops
    if not _LEAST_IOPS[kind] <= iops <= most:
        side, end, limit = ("high", "maximum", most) if iops > most else ("low", "minimum", _LEAST_IOPS[kind])
        raise refused(
            "InvalidParameterValue",
            f"Volume iops of {iops:.0f} is too {side}; {end} is {limit}.",
            f"{kind} takes {_LEAST_IOPS[kind]} to {most}",
        )
    # A gp3 volume of any size has the minimum IOPS.
    if gib and iops > max(_IOPS_PER_GIB[kind] * gib, _LEAST_IOPS["gp3"] if kind == "gp3" else 0):
        raise refused(
            "InvalidParameterValue",
            f"Iops to volume size ratio of {iops / gib:.6f} is too high; maximum is {_IOPS_PER_GIB[kind]}.",
            f"{iops:.0f} IOPS need {iops / _IOPS_PER_GIB[kind]:.0f} GiB or more",
        )


def _check_throughput(kind: str, iops: float | None, throughput: float | None) -> None:
    if throughput is None:
        return
    if kind != "gp3":
        raise refused(
            "InvalidParameterCombination",
            f"The parameter throughput is not supported for {kind} volumes.",
            "leave it out, or choose gp3",
        )
    most = min(of(Cloud.AWS).disks[kind].max_mb_per_s or throughput, (iops or 3000) * _MB_PER_S_PER_IOPS)
    if not _LEAST_MB_PER_S <= throughput <= most:
        raise refused(
            "InvalidParameterValue",
            f"Throughput of {throughput:.0f} is out of range",
            f"gp3 with {iops or 3000:.0f} IOPS takes {_LEAST_MB_PER_S} to {most:.0f} MiB/s",
        )


def _volume_places(call: Call) -> Iterable[Place]:
    return [Place("aws", call.region, call.text("availabilityZone"))]


def _volume_size(call: Call) -> None:
    check_disk(call.inputs, "size")
    if call.inputs.get("size") is None and not call.inputs.get("snapshotId"):
        raise refused("MissingParameter", "The request must contain the parameter size/snapshot", "set size")
    before = call.old.outputs.get("size") if call.old else None
    if before is not None and call.inputs.get("size", before) < before:
        raise refused(
            "InvalidParameterValue",
            "New size cannot be smaller than existing size",
            f"{call.id} has {before:.0f} GiB; a smaller disk is another disk",
        )


_volume = ResourceType(
    token=VOLUME,
    noun="volume",
    code="InvalidVolume",
    identify=generated_id("vol"),
    outputs=ec2(
        "volume",
        type=lambda _: "gp2",
        encrypted=lambda _: False,
        iops=lambda call: 3000 if call.text("type") == "gp3" else 0,
        throughput=lambda call: _LEAST_MB_PER_S if call.text("type") == "gp3" else 0,
        createTime=lambda _: "2026-01-01T00:00:00Z",
    ),
    where=("region",),
    replace_on=("availabilityZone", "encrypted", "kmsKeyId", "multiAttachEnabled", "outpostArn", "snapshotId"),
    references=(Reference("kmsKeyId", KEY_OF, holds=False),),
    refuse=(offered(_volume_places), _volume_size),
    says={
        Reason.IN_USE: Saying(
            "api error VolumeInUse: Volume {value} is currently attached to an instance", "delete first: {users}"
        ),
        Reason.MISSING: Saying(
            "api error InvalidVolume.NotFound: The volume '{value}' does not exist.",
            "{path} must name something that exists in {region}",
        ),
    },
)


def _same_zone(call: Call) -> None:
    volume, instance = call.target("volumeId"), call.target("instanceId")
    if volume and instance and volume.outputs.get("availabilityZone") != instance.outputs.get("availabilityZone"):
        raise refused(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{volume.id}' is not in the same availability zone as instance '{instance.id}'",
            f"{volume.outputs.get('availabilityZone')} and {instance.outputs.get('availabilityZone')} differ",
        )


def _attached_once(call: Call) -> None:
    volume, instance, device = (call.text(name) for name in ("volumeId", "instanceId", "deviceName"))
    if not _DEVICE.fullmatch(device):
        raise refused(
            "InvalidParameterValue",
            f"Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name.",
            "write /dev/sdf to /dev/sdp",
        )
    shared = call.target("volumeId")
    for other in others(call):
        if other.inputs.get("volumeId") == volume and not (shared and shared.inputs.get("multiAttachEnabled")):
            raise refused(
                "VolumeInUse",
                f"{volume} is already attached to an instance",
                f"{other.inputs.get('instanceId')} has it; a replacement needs delete_before_replace",
            )
        if (other.inputs.get("instanceId"), other.inputs.get("deviceName")) == (instance, device):
            raise refused(
                "InvalidParameterValue",
                f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use",
                f"{other.inputs.get('volumeId')} has it",
            )


_attachment = ResourceType(
    token="aws:ec2/volumeAttachment:VolumeAttachment",
    noun="attachment",
    code="InvalidAttachment",
    identify=lambda call: call.fresh(lambda digits: f"vai-{int(digest(digits)[:8], 16)}"),
    where=("region",),
    replace_on=("deviceName", "instanceId", "volumeId"),
    # AWS detaches volumes when it terminates their instance.
    references=(Reference("volumeId", (VOLUME,)), Reference("instanceId", (INSTANCE,), holds=False)),
    refuse=(_same_zone, _attached_once),
)

TYPES = (_volume, _attachment)
