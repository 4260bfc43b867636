"""Machines of AWS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_network

from simcloud.aws.common import arn, ec2, made_up
from simcloud.aws.network import SECURITY_GROUP, SUBNET
from simcloud.identifiers import guid
from simcloud.refusals import offered
from simcloud.rules import Call, Naming, Place, Reason, Reference, ResourceType, Saying
from simcloud.values import Properties, at

INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:autoscaling/group:Group"
TARGETS = "aws:lb/targetGroup:TargetGroup"


def _address(call: Call) -> str:
    """The first free address of the subnet; AWS keeps its first four, and its last."""
    subnet = call.target("subnetId")
    if subnet is None:
        return "172.31.0.4"
    if call.old is not None:
        return str(call.old.outputs["privateIp"])
    taken = {other.outputs.get("privateIp") for other in call.world.of_type(INSTANCE) if subnet.key in other.targets}
    hosts = ip_network(subnet.outputs["cidrBlock"])
    free = (str(hosts[i]) for i in range(4, hosts.num_addresses - 1) if str(hosts[i]) not in taken)
    address = next(free, None)
    if address is None:
        raise call.refusal(Reason.OUTSIDE, value=subnet.outputs["cidrBlock"], parent=subnet.id, ranges="it: it is full")
    return address


def _zone(call: Call) -> str:
    subnet = call.target("subnetId")
    return str(subnet.outputs["availabilityZone"]) if subnet else call.offers.zones("aws", call.region)[0]


def _instance_places(call: Call) -> Iterable[Place]:
    machine = call.text("instanceType")
    zone = call.text("availabilityZone") or _zone(call)
    return [Place("aws", call.region, zone, machine or None)]


def _template_places(call: Call) -> Iterable[Place]:
    machine = call.text("instanceType")
    return [Place("aws", call.region, machine=machine)] if machine else []


def _group_places(call: Call) -> Iterable[Place]:
    """The template's machine in the zone of each subnet: what a template alone does not say."""
    template = call.target("launchTemplate.id") or call.target("launchTemplate.name")
    machine = str(template.inputs.get("instanceType", "")) if template else ""
    for subnet in at(call.inputs, "vpcZoneIdentifiers[]"):
        for found in call.world.find((SUBNET,), str(subnet)):
            yield Place("aws", call.region, found.outputs["availabilityZone"], machine or None)


def _versions(call: Call) -> Properties:
    latest = call.old.outputs["latestVersion"] + 1 if call.old else 1
    moves = call.inputs.get("updateDefaultVersion")
    default = latest if moves or not call.old else call.old.outputs["defaultVersion"]
    return {
        **ec2("launch-template")(call),
        "latestVersion": latest,
        "defaultVersion": call.inputs.get("defaultVersion") or default,
    }


def _group_outputs(call: Call) -> Properties:
    zones = [place.zone for place in _group_places(call)]
    return {
        "arn": arn(call, "autoscaling", f"autoScalingGroup:{guid(call.urn)}:autoScalingGroupName/{call.id}"),
        "availabilityZones": call.inputs.get("availabilityZones") or sorted(set(zones)),
        "desiredCapacity": call.inputs.get("desiredCapacity", call.inputs.get("minSize")),
    }


_instance = ResourceType(
    token=INSTANCE,
    noun="instance",
    code="InvalidInstanceID",
    identify=made_up("i"),
    outputs=ec2(
        "instance",
        privateIp=_address,
        availabilityZone=_zone,
        instanceState=lambda _: "running",
        primaryNetworkInterfaceId=lambda call: f"eni-0{guid(call.id)[:8]}{guid(call.id)[-8:]}",
        privateDns=lambda call: f"ip-{_address(call).replace('.', '-')}.{call.region}.compute.internal",
    ),
    where=("region",),
    replace_on=(
        *("ami", "availabilityZone", "subnetId", "keyName", "privateIp", "placementGroup", "hibernation"),
        *("enclaveOptions.enabled", "ephemeralBlockDevices", "networkInterfaces", "hostResourceGroupArn"),
        *("rootBlockDevice.encrypted", "rootBlockDevice.kmsKeyId", "associatePublicIpAddress", "ipv6AddressCount"),
    ),
    recomputed=("instanceState", "publicIp", "publicDns"),
    references=(Reference("subnetId", (SUBNET,)), Reference("vpcSecurityGroupIds[]", (SECURITY_GROUP,))),
    refuse=(offered(_instance_places),),
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
    identify=made_up("lt"),
    outputs=_versions,
    where=("region",),
    naming=Naming(
        "name",
        re.compile(r"[a-zA-Z0-9().\-/_]{3,}"),
        128,
        "it must have 3 to 128 of a-z, A-Z, 0-9 and ().-/_",
        within=(),
    ),
    replace_on=("name", "namePrefix"),
    recomputed=("latestVersion", "defaultVersion"),
    references=(
        Reference("vpcSecurityGroupIds[]", (SECURITY_GROUP,), holds=False),
        Reference("networkInterfaces[].securityGroups[]", (SECURITY_GROUP,), holds=False),
        Reference("networkInterfaces[].subnetId", (SUBNET,), holds=False),
    ),
    refuse=(offered(_template_places),),
    implied=lambda outputs: [(TEMPLATE, str(outputs["name"]))],
    says={
        Reason.TAKEN: Saying(
            "api error InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use.",
            "choose another name than {name}, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error InvalidLaunchTemplateId.NotFound: The specified launch template, with template ID {value}, "
            "does not exist.",
            "{path} must name something that exists in {region}",
        ),
    },
)

_group = ResourceType(
    token=GROUP,
    noun="AutoScalingGroup",
    code="ValidationError",
    identify=lambda call: call.name,
    outputs=_group_outputs,
    where=("region",),
    naming=Naming("name", re.compile(r"[^:]+"), 255, "it may not have a colon", within=()),
    replace_on=("name", "namePrefix"),
    references=(
        # AWS lets a template go that a group still names; its next instance then fails.
        Reference("launchTemplate.id", (TEMPLATE,), holds=False),
        Reference("launchTemplate.name", (TEMPLATE,), holds=False),
        Reference("vpcZoneIdentifiers[]", (SUBNET,)),
        Reference("targetGroupArns[]", (TARGETS,), holds=False),
    ),
    refuse=(offered(_group_places),),
    says={
        Reason.TAKEN: Saying(
            "api error AlreadyExists: AutoScalingGroup by this name already exists - A group with the name {name} "
            "already exists",
            "choose another name, import the existing one, or delete it",
        )
    },
)

TYPES = (_instance, _template, _group)
