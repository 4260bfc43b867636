"""Auto Scaling groups of AWS. Their instances are not in the world; a group is refused whatever its launches would be."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.common import arn, by_name, named, number, refused, vpc_of
from sandbox.simcloud.aws.launch import MIXED, check_image, check_vcpus, machines_of, vcpus_of
from sandbox.simcloud.aws.security import check_same_vpc
from sandbox.simcloud.aws.tokens import PLACEMENT, SCALING_GROUP, SECURITY_GROUP, SUBNET, TARGETS, TEMPLATE
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Naming, Place, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

_TEMPLATES = (
    *("launchTemplate.id", "launchTemplate.name"),
    *(f"{MIXED}.launchTemplateSpecification.launchTemplate{suffix}" for suffix in ("Id", "Name")),
)
_VALID = "You must use a valid fully-formed launch template."


def _template(call: Call) -> Record | None:
    return next(iter(named(call, *_TEMPLATES)), None)


def _machines(call: Call) -> list[str]:
    return machines_of(call.inputs, _template(call))


def _places(call: Call) -> Iterable[Place]:
    """Yield the machines in the zone of each subnet; a template alone does not have the zones."""
    for subnet in named(call, "vpcZoneIdentifiers[]"):
        for machine in _machines(call) or [""]:
            yield Place("aws", call.region, subnet.outputs["availabilityZone"], machine or None)


def _desired(call: Call) -> int:
    return number(call, "desiredCapacity", number(call, "minSize"))


def _vcpus(call: Call) -> int:
    return _desired(call) * max(map(vcpus_of, _machines(call)), default=0)


def _outputs(call: Call) -> Properties:
    zones = [place.zone for place in _places(call)]
    return {
        "arn": arn(call, "autoscaling", f"autoScalingGroup:{guid(call.urn)}:autoScalingGroupName/{call.id}"),
        "availabilityZones": call.inputs.get("availabilityZones") or sorted(set(zones)),
        "desiredCapacity": _desired(call),
    }


def _bounds(call: Call) -> None:
    least, most = number(call, "minSize"), number(call, "maxSize")
    if least > most:
        raise refused(
            "ValidationError",
            f"Max bound, {most}, must be greater than or equal to min bound, {least}",
            "set maxSize to minSize or more",
        )
    if not least <= _desired(call) <= most:
        raise refused(
            "ValidationError",
            f"Desired capacity:{_desired(call)} must be between the specified min size:{least} and max size:{most}",
            "leave desiredCapacity out, or set it between them",
        )


def _whole(call: Call) -> None:
    """Check that the group has a template with everything an instance needs, and a subnet or zone."""
    template = _template(call)
    if template is None:
        raise refused(
            "ValidationError",
            "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or "
            "MixedInstancesPolicy parameter.",
            "give it a launch template",
        )
    for name, given in (("ImageId", "imageId"), ("InstanceType", "instanceType")):
        has = template.inputs.get(given) or (name == "InstanceType" and template.inputs.get("instanceRequirements"))
        if not has and not (name == "InstanceType" and _machines(call)):
            raise refused(
                "ValidationError",
                f"{_VALID} The request must contain the parameter {name}",
                f"set {given} of {template.id}",
            )
    _has_version(call, template)
    check_image(call, str(template.inputs.get("imageId") or ""), "ValidationError", f"{_VALID} ")
    if not call.inputs.get("vpcZoneIdentifiers") and not call.inputs.get("availabilityZones"):
        raise refused(
            "ValidationError",
            "At least one Availability Zone or VPC Subnet is required.",
            "set vpcZoneIdentifiers",
        )


def _has_version(call: Call, template: Record) -> None:
    """Refuse a version that the template has not yet had; AWS numbers them from 1."""
    newest = int(template.outputs.get("latestVersion") or 0)
    for path in ("launchTemplate", f"{MIXED}.launchTemplateSpecification"):
        for text in at(call.inputs, f"{path}.version"):
            if newest and str(text).isdigit() and int(text) > newest:
                raise refused(
                    "ValidationError",
                    f"{_VALID} Could not find launch template version {text}",
                    f"the newest of {template.id} is {newest}; use its latestVersion",
                )


def _one_network(call: Call) -> None:
    """Check that subnets, the template's security groups and the target groups are all in one VPC."""
    subnets, template = named(call, "vpcZoneIdentifiers[]"), _template(call)
    if len({vpc_of(subnet) for subnet in subnets}) > 1:
        raise refused(
            "ValidationError",
            "The subnets of an Auto Scaling group must be in the same VPC",
            ", ".join(f"{subnet.id} is in {vpc_of(subnet)}" for subnet in subnets),
        )
    if template and subnets:
        texts = [*at(template.inputs, "vpcSecurityGroupIds[]")]
        texts += [*at(template.inputs, "networkInterfaces[].securityGroups[]")]
        groups = [group for text in texts for group in call.world.find((SECURITY_GROUP,), str(text))]
        check_same_vpc(groups, subnets[0])
    for targets in named(call, "targetGroupArns[]"):
        is_ours = not subnets or vpc_of(targets) == vpc_of(subnets[0])
        if not is_ours or targets.inputs.get("targetType", "instance") != "instance":
            raise refused(
                "ValidationError",
                "Provided Target Groups may not be valid. Please ensure they exist and try again.",
                f"{targets.id} must have targetType instance and the VPC of the group's subnets",
            )


_group = ResourceType(
    token=SCALING_GROUP,
    noun="AutoScalingGroup",
    code="ValidationError",
    identify=by_name,
    outputs=_outputs,
    where=("region",),
    naming=Naming(
        "name", re.compile(r"[^:]+"), of(Cloud.AWS).names["scaling_group"].max, "it must not contain a colon", within=()
    ),
    replace_on=("name", "namePrefix"),
    references=(
        # AWS lets a template be deleted that a group still refers to; the group's next launch then fails.
        *(Reference(path, (TEMPLATE,), holds=False) for path in _TEMPLATES),
        Reference("vpcZoneIdentifiers[]", (SUBNET,)),
        Reference("targetGroupArns[]", (TARGETS,), holds=False),
        Reference("placementGroup", (PLACEMENT,)),
    ),
    refuse=(
        _bounds,
        _whole,
        offered(_places),
        _one_network,
        lambda call: check_vcpus(call, _vcpus(call)),
    ),
    says={
        Reason.TAKEN: Saying(
            "api error AlreadyExists: AutoScalingGroup by this name already exists - A group with the name {name} "
            "already exists",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error ValidationError: AutoScalingGroup name not found - no such group: {value}",
            "{path} must name something that exists in {region}",
        ),
    },
)

_tag = ResourceType(
    token="aws:autoscaling/tag:Tag",
    noun="tag",
    code="ValidationError",
    identify=lambda call: f"{call.text('autoscalingGroupName')},{call.text('tag.key')}",
    where=("region",),
    replace_on=("autoscalingGroupName", "tag.key"),
    references=(Reference("autoscalingGroupName", (SCALING_GROUP,), holds=False),),
    upserts=True,
)

TYPES = (_group, _tag)
