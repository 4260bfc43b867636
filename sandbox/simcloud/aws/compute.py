"""AWS instances, and the launch templates that groups create them from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.addresses import claimed, first_free, private_name
from sandbox.simcloud.aws.common import by_name, ec2, generated_id, named, others, refused
from sandbox.simcloud.aws.disks import check_disk
from sandbox.simcloud.aws.keys import KEY_OF
from sandbox.simcloud.aws.launch import check_image, check_image_id, check_user_data, check_vcpus, decoded, vcpus_of
from sandbox.simcloud.aws.security import groups_match_subnets
from sandbox.simcloud.aws.tokens import INSTANCE, INTERFACE, PLACEMENT, PROFILE, SECURITY_GROUP, SUBNET, TEMPLATE
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Naming, Place, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, Value, at
from sandbox.simcloud.world import Record

_STRATEGIES = ("cluster", "partition", "spread")
# "Placement groups": partitions per zone.
_PARTITIONS = 7
_INTERFACES = ("primaryNetworkInterface.networkInterfaceId", "networkInterfaces[].networkInterfaceId")


def _subnet(call: Call) -> Record | None:
    """Return the instance's subnet, or that of its interface."""
    interface = next(iter(named(call, *_INTERFACES)), None)
    if interface is not None:
        return call.world.get(SUBNET, str(interface.inputs["subnetId"]))
    return call.target("subnetId")


def _address(call: Call) -> str:
    interface = next(iter(named(call, *_INTERFACES)), None)
    if interface is not None:
        return str(interface.outputs["privateIp"])
    subnet = call.target("subnetId")
    if subnet is None:
        return "172.31.0.4"
    return str(call.old.outputs["privateIp"]) if call.old is not None else first_free(call, subnet)


def _interface(call: Call) -> str:
    interface = next(iter(named(call, *_INTERFACES)), None)
    return interface.id if interface else f"eni-0{guid(call.id)[:8]}{guid(call.id)[-8:]}"


def _zone(call: Call) -> str:
    subnet = _subnet(call)
    return str(subnet.outputs["availabilityZone"]) if subnet else call.offers.zones("aws", call.region)[0]


def _instance_places(call: Call) -> Iterable[Place]:
    machine = call.text("instanceType")
    zone = call.text("availabilityZone") or _zone(call)
    return [Place("aws", call.region, zone, machine or None)]


def _template_places(call: Call) -> Iterable[Place]:
    machine = call.text("instanceType")
    return [Place("aws", call.region, machine=machine)] if machine else []


def _quota(call: Call) -> None:
    check_vcpus(call, vcpus_of(call.text("instanceType")))


def _instance_texts(call: Call) -> None:
    check_image(call, call.text("ami"))
    check_user_data(call.text("userData").encode())
    check_user_data(decoded(call.text("userDataBase64")))


def _template_texts(call: Call) -> None:
    check_image_id(call.text("imageId"))
    check_user_data(decoded(call.text("userData")))


def _instance_disks(call: Call) -> None:
    for disk in (*at(call.inputs, "rootBlockDevice"), *at(call.inputs, "ebsBlockDevices[]")):
        check_disk(disk, "volumeSize")


def _template_disks(call: Call) -> None:
    for disk in at(call.inputs, "blockDeviceMappings[].ebs"):
        check_disk(disk, "volumeSize")


def _interface_or_subnet(call: Call) -> None:
    """Refuse properties that the instance's interface already sets, and interfaces of other instances."""
    interfaces = named(call, *_INTERFACES)
    for path, words in (("subnetId", "an instance-level subnet ID"), ("vpcSecurityGroupIds", "security groups")):
        if interfaces and call.inputs.get(path):
            raise refused(
                "InvalidParameterCombination",
                f"Network interfaces and {words} may not be specified on the same request",
                f"leave {path} to {interfaces[0].id}",
            )
    for interface in interfaces:
        holder = next((other for other in others(call) if interface.key in other.targets), None)
        if holder is not None:
            raise refused(
                "InvalidNetworkInterface.InUse",
                f"Interface: [{interface.id}] in use.",
                f"{holder.id} has it; a replacement that keeps it needs delete_before_replace",
            )


def _groups_once(call: Call) -> None:
    if call.inputs.get("vpcSecurityGroupIds") and call.inputs.get("networkInterfaces"):
        raise refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
            "give networkInterfaces[].securityGroups or vpcSecurityGroupIds",
        )


def _replaced_by_text(old: Mapping[str, Value], new: Mapping[str, Value]) -> Iterator[str]:
    """Yield the user data if it replaces the instance; by default the provider stops an instance to change its user data."""
    if new.get("userDataReplaceOnChange") is True:
        yield from ("userData", "userDataBase64")


def _versions(call: Call) -> Properties:
    latest = call.old.outputs["latestVersion"] + 1 if call.old else 1
    moves = call.inputs.get("updateDefaultVersion")
    default = latest if moves or not call.old else call.old.outputs["defaultVersion"]
    return {
        **ec2("launch-template")(call),
        "latestVersion": latest,
        "defaultVersion": call.inputs.get("defaultVersion") or default,
    }


_instance = ResourceType(
    token=INSTANCE,
    noun="instance",
    code="InvalidInstanceID",
    identify=generated_id("i"),
    outputs=ec2(
        "instance",
        privateIp=_address,
        availabilityZone=_zone,
        instanceState=lambda _: "running",
        primaryNetworkInterfaceId=_interface,
        privateDns=lambda call: private_name(call, call.text("privateIp") or _address(call)),
    ),
    where=("region",),
    replace_on=(
        *("ami", "availabilityZone", "subnetId", "keyName", "privateIp", "placementGroup", "hibernation"),
        *("enclaveOptions.enabled", "ephemeralBlockDevices", "networkInterfaces", "hostResourceGroupArn"),
        *("rootBlockDevice.encrypted", "rootBlockDevice.kmsKeyId", "associatePublicIpAddress", "ipv6AddressCount"),
        *("primaryNetworkInterface", "placementGroupId", "instanceMarketOptions"),
    ),
    replace_when=_replaced_by_text,
    recomputed=("instanceState", "publicIp", "publicDns"),
    references=(
        Reference("subnetId", (SUBNET,)),
        Reference("vpcSecurityGroupIds[]", (SECURITY_GROUP,)),
        *(Reference(path, (INTERFACE,)) for path in _INTERFACES),
        Reference("placementGroup", (PLACEMENT,)),
        Reference("iamInstanceProfile", (PROFILE,), holds=False),
        Reference("rootBlockDevice.kmsKeyId", KEY_OF, holds=False),
    ),
    refuse=(
        offered(_instance_places),
        _instance_texts,
        _instance_disks,
        _interface_or_subnet,
        groups_match_subnets(("vpcSecurityGroupIds[]",), lambda call: named(call, "subnetId")),
        claimed("privateIp", lambda call: call.target("subnetId")),
        _quota,
    ),
    protected_by={"disableApiTermination": True},
    says={
        Reason.PROTECTED: Saying(
            "api error OperationNotPermitted: The instance '{id}' may not be terminated. Modify its "
            "'disableApiTermination' instance attribute and try again.",
            "set {path} to false and update before deleting",
        )
    },
)

_template = ResourceType(
    token=TEMPLATE,
    noun="launch template",
    code="InvalidLaunchTemplateId",
    identify=generated_id("lt"),
    outputs=_versions,
    where=("region",),
    naming=Naming(
        "name",
        re.compile(r"[a-zA-Z0-9().\-/_]{3,}"),
        of(Cloud.AWS).names["launch_template"].max,
        "it must have 3 to 128 of a-z, A-Z, 0-9 and ().-/_",
        within=(),
    ),
    replace_on=("name", "namePrefix"),
    recomputed=("latestVersion", "defaultVersion"),
    references=(
        Reference("vpcSecurityGroupIds[]", (SECURITY_GROUP,), holds=False),
        Reference("networkInterfaces[].securityGroups[]", (SECURITY_GROUP,), holds=False),
        Reference("networkInterfaces[].subnetId", (SUBNET,), holds=False),
        Reference("iamInstanceProfile.name", (PROFILE,), holds=False),
        Reference("iamInstanceProfile.arn", (PROFILE,), holds=False),
        Reference("placement.groupName", (PLACEMENT,), holds=False),
        Reference("blockDeviceMappings[].ebs.kmsKeyId", KEY_OF, holds=False),
    ),
    refuse=(offered(_template_places), _template_texts, _template_disks, _groups_once),
    implied=lambda outputs: [(TEMPLATE, str(outputs["name"]))],
    says={
        Reason.TAKEN: Saying(
            "api error InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use.",
            "choose a name other than {name}, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error InvalidLaunchTemplateId.NotFound: The specified launch template, with template ID {value}, "
            "does not exist.",
            "{path} must name something that exists in {region}",
        ),
    },
)


def _strategy(call: Call) -> None:
    strategy, partitions = call.text("strategy"), call.inputs.get("partitionCount")
    if strategy not in _STRATEGIES:
        raise refused(
            "InvalidParameterValue", f"Value ({strategy}) for parameter strategy is invalid.", f"one of {_STRATEGIES}"
        )
    if partitions is not None and not (strategy == "partition" and 1 <= partitions <= _PARTITIONS):
        raise refused(
            "InvalidParameterValue",
            f"Value ({partitions:.0f}) for parameter partitionCount is invalid.",
            f"only the strategy partition has partitions, 1 to {_PARTITIONS}",
        )


_placement = ResourceType(
    token=PLACEMENT,
    noun="placement group",
    code="InvalidPlacementGroup",
    identify=by_name,
    outputs=lambda call: {
        **ec2("placement-group")(call),
        "placementGroupId": f"pg-0{guid(call.urn).replace('-', '')[:16]}",
    },
    where=("region",),
    naming=Naming("name", re.compile(r"[ -~]+"), 255, "it may have printable ASCII only", within=()),
    replace_on=("name", "partitionCount", "spreadLevel", "strategy"),
    refuse=(_strategy,),
    says={
        Reason.TAKEN: Saying(
            "api error InvalidPlacementGroup.Duplicate: The Placement Group '{name}' already exists.",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error InvalidPlacementGroup.Unknown: The Placement Group '{value}' is unknown.",
            "{path} must name something that exists in {region}",
        ),
        Reason.IN_USE: Saying(
            "api error InvalidPlacementGroup.InUse: The placement group '{value}' is in use and may not be deleted.",
            "delete first: {users}",
        ),
    },
)

TYPES = (_instance, _template, _placement)
