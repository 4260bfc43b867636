"""Load balancers of AWS."""

from __future__ import annotations

import re
from collections.abc import Callable

from simcloud.aws.common import arn, tags
from simcloud.aws.compute import TARGETS
from simcloud.aws.network import IN_VPC, SECURITY_GROUP, SUBNET
from simcloud.identifiers import digest
from simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from simcloud.values import Properties, Value, at

BALANCER = "aws:lb/loadBalancer:LoadBalancer"
LISTENER = "aws:lb/listener:Listener"

_NAME = Naming(
    "name",
    re.compile(r"(?!internal-)[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"),
    32,
    "it may have only a-z, A-Z, 0-9 and hyphens, none of them first or last, and not begin with internal-",
    within=(),
)


def _kind(call: Call) -> str:
    return {"network": "net", "gateway": "gwy"}.get(call.text("loadBalancerType"), "app")


def _by_arn(resource: Callable[[Call], str]) -> Callable[[Call], str]:
    """ARNs that end in 16 hexadecimal digits are the ids."""
    return lambda call: call.fresh(lambda digits: arn(call, "elasticloadbalancing", f"{resource(call)}/{digits[:16]}"))


def _outputs(call: Call) -> Properties:
    return {"arn": call.id, "arnSuffix": call.id.rpartition(":")[2].partition("/")[2], **tags(call)}


def _balancer_outputs(call: Call) -> Properties:
    subnets = [*at(call.inputs, "subnets[]"), *at(call.inputs, "subnetMappings[].subnetId")]
    found = [record for text in subnets for record in call.world.find((SUBNET,), str(text))]
    inward = "internal-" if call.inputs.get("internal") and _kind(call) == "app" else ""
    number = call.id.rpartition("/")[2]
    domain = f"elb.{call.region}" if _kind(call) == "net" else f"{call.region}.elb"
    return {
        **_outputs(call),
        "dnsName": f"{inward}{call.name}-{number}.{domain}.amazonaws.com",
        "zoneId": f"Z{digest(call.region)[:12].upper()}",
        "vpcId": found[0].inputs["vpcId"] if found else "",
        "loadBalancerType": call.inputs.get("loadBalancerType", "application"),
    }


def _loses_any(old: Value, new: Value) -> bool:
    return not {str(item) for item in old} <= {str(item) for item in new or ()}


_balancer = ResourceType(
    token=BALANCER,
    noun="Load balancer",
    code="LoadBalancerNotFound",
    identify=_by_arn(lambda call: f"loadbalancer/{_kind(call)}/{call.name}"),
    outputs=_balancer_outputs,
    where=("region",),
    naming=_NAME,
    replace_on=("name", "namePrefix", "internal", "loadBalancerType", "customerOwnedIpv4Pool"),
    # Subnets and, once there are any, security groups of a network load balancer can only be added.
    replace_if={"subnets": _loses_any, "subnetMappings": _loses_any},
    references=(
        Reference("subnets[]", (SUBNET,)),
        Reference("subnetMappings[].subnetId", (SUBNET,)),
        Reference("securityGroups[]", (SECURITY_GROUP,)),
    ),
    protected_by={"enableDeletionProtection": True},
    says={
        Reason.TAKEN: Saying(
            "api error DuplicateLoadBalancerName: A load balancer with the same name '{name}' exists, but with "
            "different settings",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error LoadBalancerNotFound: Load balancers '[{value}]' not found",
            "{path} must name something that exists in {region}",
        ),
    },
)

_targets = ResourceType(
    token=TARGETS,
    noun="Target group",
    code="TargetGroupNotFound",
    identify=_by_arn(lambda call: f"targetgroup/{call.name}"),
    outputs=_outputs,
    where=("region",),
    naming=_NAME,
    replace_on=("name", "namePrefix", "port", "protocol", "protocolVersion", "targetType", "vpcId", "ipAddressType"),
    # A VPC goes while a target group still names it.
    references=(Reference("vpcId", IN_VPC.types, holds=False),),
    says={
        Reason.TAKEN: Saying(
            "api error DuplicateTargetGroupName: A target group with the same name '{name}' exists, but with "
            "different settings",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error TargetGroupNotFound: Target groups '{value}' not found",
            "{path} must name something that exists in {region}",
        ),
        Reason.IN_USE: Saying(
            "api error ResourceInUse: Target group '{value}' is currently in use by a listener or a rule",
            "delete first: {users}",
        ),
    },
)

_listener = ResourceType(
    token=LISTENER,
    noun="Listener",
    code="ListenerNotFound",
    identify=lambda call: call.fresh(
        lambda digits: f"{call.text('loadBalancerArn').replace(':loadbalancer/', ':listener/')}/{digits[:16]}"
    ),
    outputs=lambda call: {"arn": call.id, **tags(call)},
    where=("region",),
    replace_on=("loadBalancerArn",),
    references=(
        Reference("loadBalancerArn", (BALANCER,), holds=False),
        Reference("defaultActions[].targetGroupArn", (TARGETS,)),
    ),
)

TYPES = (_balancer, _targets, _listener)
