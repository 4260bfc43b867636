"""Listeners of AWS load balancers, and their target groups."""

from __future__ import annotations

from sandbox.simcloud.aws.common import named, others, refused, tags
from sandbox.simcloud.aws.load_balancing import NAME, by_arn, outputs
from sandbox.simcloud.aws.network import IN_VPC
from sandbox.simcloud.aws.tokens import BALANCER, LISTENER, TARGETS
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at

# "CreateListener", by type of load balancer.
_PROTOCOLS = {
    "net": ("TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"),
    "app": ("HTTP", "HTTPS"),
    "gwy": ("GENEVE", ""),
}
# "Target groups for your Network Load Balancers", routing configuration. It doesn't say what QUIC takes.
_SPEAKS = {
    "TCP": ("TCP", "TCP_UDP"),
    "UDP": ("UDP", "TCP_UDP"),
    "QUIC": ("QUIC", "TCP_QUIC"),
    "TLS": ("TCP", "TLS"),
    "HTTPS": ("HTTP", "HTTPS"),
    "HTTP": ("HTTP", "HTTPS"),
}


def _checks(call: Call) -> None:
    """Check the settings of the health check."""
    if call.inputs.get("targetType") != "lambda" and not call.inputs.get("vpcId"):
        raise refused("ValidationError", "A VPC ID must be specified", "set vpcId")
    check: Properties = next(at(call.inputs, "healthCheck"), {})
    # The provider's default, whatever the group's protocol.
    protocol = check.get("protocol") or "HTTP"
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
    identify=by_arn(lambda call: f"targetgroup/{call.name}"),
    outputs=outputs,
    where=("region",),
    naming=NAME,
    replace_on=("name", "namePrefix", "port", "protocol", "protocolVersion", "targetType", "vpcId", "ipAddressType"),
    # A VPC can be deleted while a target group still refers to it.
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
    """Check that the load balancer supports the listener's protocol, and that the target group's protocol matches it."""
    balancer, protocol = call.target("loadBalancerArn"), call.text("protocol")
    kind = balancer.id.split(":loadbalancer/")[1].split("/")[0] if balancer else ""
    if balancer and protocol not in _PROTOCOLS[kind]:
        raise refused(
            "ValidationError",
            f"Listener protocol '{protocol}' must be one of '{', '.join(_PROTOCOLS[kind])}'",
            "the load balancer's type decides",
        )
    for targets in named(call, "defaultActions[].targetGroupArn"):
        target_protocol = str(targets.inputs.get("protocol", ""))
        if target_protocol not in _SPEAKS.get(protocol, (protocol,)):
            raise refused(
                "IncompatibleProtocols",
                f"Listener protocol '{protocol}' is not supported with a target group with the protocol '{target_protocol}'",
                f"it takes {' or '.join(_SPEAKS.get(protocol, (protocol,)))}",
            )


def _one_balancer(call: Call) -> None:
    """Check that a target group has one load balancer, in the same VPC."""
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

TYPES = (_targets, _listener)
