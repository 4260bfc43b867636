"""What AWS refuses when it launches an instance, for a program or for a group."""

from __future__ import annotations

import base64
import binascii
import re

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.common import refused
from sandbox.simcloud.aws.tokens import INSTANCE, SCALING_GROUP, TEMPLATE
from sandbox.simcloud.quotas import exceeded
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record, World

MIXED = "mixedInstancesPolicy.launchTemplate"
_IMAGE = re.compile(r"ami-[0-9a-f]+|resolve:ssm:.+")


def machines_of(group: Properties, template: Record | None) -> list[str]:
    """Return the machine types of a scaling group's instances: the template's, or those that the group mixes."""
    mixed = [str(text) for text in at(group, f"{MIXED}.overrides[].instanceType")]
    own = str(template.inputs.get("instanceType") or "") if template else ""
    return mixed or ([own] if own else [])


def check_vcpus(call: Call, more: int) -> None:
    """Check the account's vCPU quota. more: the vCPUs that this call needs, without those that it has now."""
    if over := exceeded(call, more, lambda other: _running(call.world, other)):
        raise refused(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {over.quota} allows for the instance "
            "bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/"
            "ec2-request to request an adjustment to this limit.",
            f"{over.running} vCPUs run in {call.region}, {more} more were requested",
        )


def vcpus_of(machine: str) -> int:
    """Return the vCPUs of a machine type; 0 if the catalogue knows only its name."""
    entry = of(Cloud.AWS).machine_types.get(machine)
    return entry.type.vcpus if entry and entry.type else 0


def _running(world: World, record: Record) -> int:
    if record.type == INSTANCE:
        return vcpus_of(str(record.inputs.get("instanceType")))
    if record.type != SCALING_GROUP:
        return 0
    template = next((world.get(*key) for key in record.targets if key[0] == TEMPLATE), None)
    machines = machines_of(record.inputs, template)
    return int(record.outputs["desiredCapacity"]) * max(map(vcpus_of, machines), default=0)


def check_image_id(image: str) -> None:
    """Refuse a malformed image ID."""
    if image and not _IMAGE.fullmatch(image):
        raise refused("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")', "give an image's id")


def check_image(call: Call, image: str, code: str = "InvalidAMIID.NotFound", before: str = "") -> None:
    """Refuse an image ID that is malformed, or that the account does not have. A template may have one until it is used."""
    check_image_id(image)
    if image and not call.offers.images("aws", call.region, image):
        text = f"{before}The image id '[{image}]' does not exist"
        raise refused(code, text, f"each region has its own: aws ec2 describe-images --region {call.region}")


def check_user_data(text: bytes) -> None:
    """Refuse user data that is too large for instances."""
    most = of(Cloud.AWS).user_data.max_bytes
    if len(text) > most:
        raise refused(
            "InvalidParameterValue",
            f"User data is limited to {most} bytes",
            f"it has {len(text)} before base64; let hosts fetch the rest",
            "userData",
        )


def decoded(text: str) -> bytes:
    """Return user data as the instance receives it."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise refused(
            "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.", "encode it", "userData"
        ) from None
