"""Load balancers of AWS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.addresses import claim
from sandbox.simcloud.aws.common import arn, named, others, refused, tags, vpc_of
from sandbox.simcloud.aws.security import groups_match_subnets
from sandbox.simcloud.aws.tokens import (
    ADDRESS,
    BALANCER,
    BUCKET,
    BUCKET_POLICY,
    INTERNET_GATEWAY,
    SECURITY_GROUP,
    SUBNET,
)
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, Value, at
from sandbox.simcloud.world import Record

_PLACES = ("subnets[]", "subnetMappings[].subnetId")
NAME = Naming(
    "name",
    re.compile(r"(?!internal-)[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"),
    of(Cloud.AWS).names["load_balancer"].max,
    "it may have only a-z, A-Z, 0-9 and hyphens, none of them first or last, and not start with internal-",
    within=(),
)


def _kind(call: Call) -> str:
    return {"network": "net", "gateway": "gwy"}.get(call.text("loadBalancerType"), "app")


def by_arn(resource: Callable[[Call], str]) -> Callable[[Call], str]:
    """Return a function that makes ARNs with 16 hexadecimal digits at the end, used as IDs."""
    return lambda call: call.fresh(lambda digits: arn(call, "elasticloadbalancing", f"{resource(call)}/{digits[:16]}"))


def outputs(call: Call) -> Properties:
    return {"arn": call.id, "arnSuffix": call.id.rpartition(":")[2].partition("/")[2], **tags(call)}


def _balancer_outputs(call: Call) -> Properties:
    subnets = [*at(call.inputs, "subnets[]"), *at(call.inputs, "subnetMappings[].subnetId")]
    records = [record for text in subnets for record in call.world.find((SUBNET,), str(text))]
    inward = "internal-" if call.inputs.get("internal") and _kind(call) == "app" else ""
    number = call.id.rpartition("/")[2]
    domain = f"elb.{call.region}" if _kind(call) == "net" else f"{call.region}.elb"
    return {
        **outputs(call),
        "dnsName": f"{inward}{call.name}-{number}.{domain}.amazonaws.com",
        "zoneId": f"Z{digest(call.region)[:12].upper()}",
        "vpcId": records[0].inputs["vpcId"] if records else "",
        "loadBalancerType": call.inputs.get("loadBalancerType", "application"),
    }


def _loses_any(old: Value, new: Value) -> bool:
    return not {str(item) for item in old} <= {str(item) for item in new or ()}


def _groups_added_or_removed(old: Mapping[str, Value], new: Mapping[str, Value]) -> Iterator[str]:
    """Yield the groups if they force replacement: the first group cannot be added later, and the last cannot be removed."""
    if new.get("loadBalancerType") == "network" and bool(old.get("securityGroups")) != bool(new.get("securityGroups")):
        yield "securityGroups"


def _subnets(call: Call) -> list[Record]:
    return named(call, *_PLACES)


def _one_per_zone(call: Call) -> None:
    subnets = _subnets(call)
    if bool(call.inputs.get("subnets")) == bool(call.inputs.get("subnetMappings")):
        raise refused("ValidationError", "At least one subnet must be specified", "give subnets or subnetMappings")
    zones = [str(subnet.outputs["availabilityZone"]) for subnet in subnets]
    if len(set(zones)) < len(zones):
        raise refused(
            "InvalidConfigurationRequest",
            "A load balancer cannot be attached to multiple subnets in the same Availability Zone",
            f"zones of the subnets: {', '.join(zones)}",
        )
    if _kind(call) == "app" and len(zones) < 2:
        raise refused(
            "ValidationError",
            "At least two subnets in two different Availability Zones must be specified",
            "an application load balancer has two zones or more",
        )
    if len({vpc_of(subnet) for subnet in subnets}) > 1:
        raise refused("InvalidSubnet", "The subnets are not all in one VPC", ", ".join(subnet.id for subnet in subnets))


def _mapped(call: Call) -> None:
    """Check fixed private addresses: only for internal network load balancers, and free."""
    for mapping in at(call.inputs, "subnetMappings[]"):
        text = str(mapping.get("privateIpv4Address") or "")
        if text and not (_kind(call) == "net" and call.inputs.get("internal")):
            raise refused(
                "InvalidConfigurationRequest",
                "A private IPv4 address can be specified for internal Network Load Balancers only",
                f"set internal, or leave {text} out",
            )
        subnet = call.world.get(SUBNET, str(mapping.get("subnetId")))
        if text and subnet is not None:
            claim(call, subnet, text, "subnetMappings[].privateIpv4Address")


def _reached_from_outside(call: Call) -> None:
    """Check Elastic IP addresses: only for internet-facing load balancers, one balancer each, with an internet gateway."""
    internal, allocations = bool(call.inputs.get("internal")), list(at(call.inputs, "subnetMappings[].allocationId"))
    if internal and allocations:
        raise refused(
            "InvalidConfigurationRequest",
            "An Elastic IP address can be specified for internet-facing load balancers only",
            "leave allocationId out, or internal",
        )
    for other in others(call):
        if taken := {*allocations} & {*at(other.inputs, "subnetMappings[].allocationId")}:
            text = f"The allocation IDs are not available for use: {', '.join(sorted(taken))}"
            raise refused("AllocationIdNotFound", text, f"{other.id} has them")
    for vpc in {vpc_of(subnet) for subnet in _subnets(call)}:
        gateways = call.world.of_type(INTERNET_GATEWAY)
        if not internal and not any(gateway.inputs.get("vpcId") == vpc for gateway in gateways):
            raise refused(
                "InvalidSubnet",
                f"VPC {vpc} has no internet gateway",
                "make the load balancer depend on one, or make it internal",
            )


def _logs(call: Call) -> None:
    """Check that log delivery may write to the bucket before logs are enabled."""
    for logs in at(call.inputs, "accessLogs"):
        bucket = str(logs.get("bucket"))
        if logs.get("enabled") and call.world.get(BUCKET_POLICY, bucket) is None:
            raise refused(
                "InvalidConfigurationRequest",
                f"Access Denied for bucket: {bucket}. Please check S3bucket permission",
                "a BucketPolicy must let Elastic Load Balancing write, and the load balancer depend on it",
            )


_balancer = ResourceType(
    token=BALANCER,
    noun="Load balancer",
    code="LoadBalancerNotFound",
    identify=by_arn(lambda call: f"loadbalancer/{_kind(call)}/{call.name}"),
    outputs=_balancer_outputs,
    where=("region",),
    naming=NAME,
    replace_on=("name", "namePrefix", "internal", "loadBalancerType", "customerOwnedIpv4Pool"),
    # A network load balancer can gain subnets, but lose none.
    replace_if={"subnets": _loses_any, "subnetMappings": _loses_any},
    replace_when=_groups_added_or_removed,
    references=(
        *(Reference(path, (SUBNET,)) for path in _PLACES),
        Reference("securityGroups[]", (SECURITY_GROUP,)),
        Reference("subnetMappings[].allocationId", (ADDRESS,)),
        Reference("accessLogs.bucket", (BUCKET,), holds=False),
    ),
    refuse=(
        _one_per_zone,
        groups_match_subnets(("securityGroups[]",), _subnets),
        _mapped,
        _reached_from_outside,
        _logs,
    ),
    implied=lambda outputs: [(BALANCER, str(outputs["dnsName"]).lower())],
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


TYPES = (_balancer,)
