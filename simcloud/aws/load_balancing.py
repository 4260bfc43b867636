"""Load balancers of AWS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from cluster.catalogue import of
from cluster.spec import Cloud
from simcloud.aws.addresses import claim
from simcloud.aws.common import arn, named, others, refused, tags, vpc_of
from simcloud.aws.network import IN_VPC
from simcloud.aws.security import beside_subnets
from simcloud.aws.tokens import (
    ADDRESS,
    BALANCER,
    BUCKET,
    BUCKET_POLICY,
    INTERNET_GATEWAY,
    LISTENER,
    SECURITY_GROUP,
    SUBNET,
    TARGETS,
)
from simcloud.identifiers import digest
from simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from simcloud.values import Properties, Value, at
from simcloud.world import Record

_PLACES = ("subnets[]", "subnetMappings[].subnetId")
# "CreateListener", by type of load balancer.
_PROTOCOLS = {
    "net": ("TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"),
    "app": ("HTTP", "HTTPS"),
    "gwy": ("GENEVE", ""),
}
_SPEAKS = {"TLS": ("TCP", "TLS"), "HTTPS": ("HTTP", "HTTPS"), "HTTP": ("HTTP", "HTTPS")}

_NAME = Naming(
    "name",
    re.compile(r"(?!internal-)[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"),
    of(Cloud.AWS).names["load_balancer"].max,
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


def _groups_come_or_go(old: Mapping[str, Value], new: Mapping[str, Value]) -> Iterator[str]:
    """A network load balancer without security groups gets none later, nor loses its last."""
    if new.get("loadBalancerType") == "network" and bool(old.get("securityGroups")) != bool(new.get("securityGroups")):
        yield "securityGroups"


def _subnets(call: Call) -> list[Record]:
    return named(call, *_PLACES)


def _one_a_zone(call: Call) -> None:
    found = _subnets(call)
    if bool(call.inputs.get("subnets")) == bool(call.inputs.get("subnetMappings")):
        raise refused("ValidationError", "At least one subnet must be specified", "give subnets or subnetMappings")
    zones = [str(subnet.outputs["availabilityZone"]) for subnet in found]
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
    if len({vpc_of(subnet) for subnet in found}) > 1:
        raise refused("InvalidSubnet", "The subnets are not all in one VPC", ", ".join(subnet.id for subnet in found))


def _mapped(call: Call) -> None:
    """Fixed private addresses are for internal network load balancers, and must be free."""
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
    """Elastic IP addresses are for those that the internet reaches, each for one, and need an internet gateway."""
    internal, wanted = bool(call.inputs.get("internal")), list(at(call.inputs, "subnetMappings[].allocationId"))
    if internal and wanted:
        raise refused(
            "InvalidConfigurationRequest",
            "An Elastic IP address can be specified for internet-facing load balancers only",
            "leave allocationId out, or internal",
        )
    for other in others(call):
        if taken := {*wanted} & {*at(other.inputs, "subnetMappings[].allocationId")}:
            text = f"The allocation IDs are not available for use: {', '.join(sorted(taken))}"
            raise refused("AllocationIdNotFound", text, f"{other.id} has them")
    for vpc in {vpc_of(subnet) for subnet in _subnets(call)}:
        gateways = call.world.of_type(INTERNET_GATEWAY)
        if not internal and not any(gateway.inputs.get("vpcId") == vpc for gateway in gateways):
            raise refused(
                "InvalidSubnet",
                f"VPC {vpc} has no internet gateway",
                "make the load balancer depend on one, or internal",
            )


def _logs(call: Call) -> None:
    """Who delivers logs may write to the bucket before it is asked to."""
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
    identify=_by_arn(lambda call: f"loadbalancer/{_kind(call)}/{call.name}"),
    outputs=_balancer_outputs,
    where=("region",),
    naming=_NAME,
    replace_on=("name", "namePrefix", "internal", "loadBalancerType", "customerOwnedIpv4Pool"),
    # A network load balancer can be given more subnets, and none of them be taken away.
    replace_if={"subnets": _loses_any, "subnetMappings": _loses_any},
    replace_when=_groups_come_or_go,
    references=(
        *(Reference(path, (SUBNET,)) for path in _PLACES),
        Reference("securityGroups[]", (SECURITY_GROUP,)),
        Reference("subnetMappings[].allocationId", (ADDRESS,)),
        Reference("accessLogs.bucket", (BUCKET,), holds=False),
    ),
    refuse=(_one_a_zone, beside_subnets(("securityGroups[]",), _subnets), _mapped, _reached_from_outside, _logs),
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


def _checks(call: Call) -> None:
    """Of the health of targets."""
    if call.inputs.get("targetType") != "lambda" and not call.inputs.get("vpcId"):
        raise refused("ValidationError", "A VPC ID must be specified", "set vpcId")
    check: Properties = next(at(call.inputs, "healthCheck"), {})
    protocol = check.get("protocol") or ("HTTP" if call.text("protocol") in ("HTTP", "HTTPS") else "TCP")
    for name in ("path", "matcher"):
        if protocol == "TCP" and check.get(name):
            raise refused(
                "", f"healthCheck.{name}: should not be set when protocol is TCP", "check by HTTP or HTTPS", name
            )
    for name, least, most in (("interval", 5, 300), ("healthyThreshold", 2, 10), ("unhealthyThreshold", 2, 10)):
        value = check.get(name)
        if value is not None and not least <= value <= most:
            raise refused(
                "",
                f"expected healthCheck.{name} to be in the range ({least} - {most}), got {value:.0f}",
                "set it within",
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
    refuse=(_checks,),
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


def _port_once(call: Call) -> None:
    for other in others(call):
        same = all(other.inputs.get(name) == call.inputs.get(name) for name in ("loadBalancerArn", "port"))
        if same and call.inputs.get("port") is not None:
            raise refused(
                "DuplicateListener",
                "A listener already exists on this port for this load balancer",
                f"{other.id} has port {call.text('port')}",
            )


def _protocols(call: Call) -> None:
    """The listener's is one of its load balancer's, and its targets' goes with it."""
    balancer, protocol = call.target("loadBalancerArn"), call.text("protocol")
    kind = balancer.id.split(":loadbalancer/")[1].split("/")[0] if balancer else ""
    if balancer and protocol not in _PROTOCOLS[kind]:
        raise refused(
            "ValidationError",
            f"Listener protocol '{protocol}' must be one of '{', '.join(_PROTOCOLS[kind])}'",
            "the load balancer's type decides",
        )
    for targets in named(call, "defaultActions[].targetGroupArn"):
        theirs = str(targets.inputs.get("protocol", ""))
        if theirs not in _SPEAKS.get(protocol, (protocol,)):
            raise refused(
                "IncompatibleProtocols",
                f"Listener protocol '{protocol}' is not supported with a target group with the protocol '{theirs}'",
                f"it takes {' or '.join(_SPEAKS.get(protocol, (protocol,)))}",
            )


def _one_balancer(call: Call) -> None:
    """A target group is reached from one load balancer, of its VPC."""
    balancer = call.target("loadBalancerArn")
    for targets in named(call, "defaultActions[].targetGroupArn"):
        for other in others(call):
            if targets.key in other.targets and other.inputs.get("loadBalancerArn") != call.text("loadBalancerArn"):
                raise refused(
                    "TargetGroupAssociationLimit",
                    "The following target groups cannot be associated with more than one load balancer: " + targets.id,
                    f"{other.inputs.get('loadBalancerArn')} has it",
                )
        if balancer and balancer.outputs.get("vpcId") != targets.inputs.get("vpcId"):
            raise refused(
                "InvalidConfigurationRequest",
                f"The target group {targets.id} is in another VPC than the load balancer",
                f"both must be in {balancer.outputs.get('vpcId')}",
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
    refuse=(_port_once, _protocols, _one_balancer),
)

TYPES = (_balancer, _targets, _listener)
