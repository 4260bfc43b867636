"""Endpoints from a VPC to AWS services, and flow logs."""

from __future__ import annotations

import json

from sandbox.simcloud.aws.addresses import first_free
from sandbox.simcloud.aws.common import arn, ec2, generated_id, named, others, refused, tags
from sandbox.simcloud.aws.documents import policy_is_json
from sandbox.simcloud.aws.network import IN_VPC
from sandbox.simcloud.aws.security import groups_match_subnets
from sandbox.simcloud.aws.tokens import BUCKET, ENDPOINT, INTERFACE, ROUTE_TABLE, SECURITY_GROUP, SUBNET, VPC
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Reference, ResourceType
from sandbox.simcloud.values import Properties

# "Gateway endpoints", and "Networking for directory buckets" of S3.
_GATEWAYS = ("s3", "dynamodb", "s3express")
# "AWS services that integrate with AWS PrivateLink": names begin with one of these and the region, or have none.
_FIRST = ("com.amazonaws", "aws.sagemaker", "aws.api", "api.aws", "cn.com.amazonaws")
_GLOBAL = ("com.amazonaws.s3-global.accesspoint", "com.amazonaws.iam")
# "CreateVpcEndpoint" (Amazon EC2): what an endpoint leads to, by its type; all others lead to a service.
_LEADS = {
    "Resource": "resourceConfigurationArn",
    "Tunnel": "resourceConfigurationArn",
    "ServiceNetwork": "serviceNetworkArn",
}
_LOGGED = ("eniId", "subnetId", "vpcId", "transitGatewayId", "transitGatewayAttachmentId", "regionalNatGatewayId")


def _kind(call: Call) -> str:
    return call.text("vpcEndpointType") or "Gateway"


def _host(call: Call) -> str:
    """Return a name like ``secretsmanager.eu-west-1.amazonaws.com``."""
    region = call.text("serviceRegion") or call.region
    return f"{call.text('serviceName').rpartition('.')[2]}.{region}.amazonaws.com"


def _interfaces(call: Call) -> Properties:
    kept = {item["subnetId"]: item for item in (call.old.outputs.get("subnetConfigurations") or ())} if call.old else {}
    given = {item["subnetId"]: item for item in call.inputs.get("subnetConfigurations") or () if item.get("ipv4")}
    placed = [
        given.get(subnet.id) or kept.get(subnet.id) or {"subnetId": subnet.id, "ipv4": first_free(call, subnet)}
        for subnet in named(call, "subnetIds[]")
    ]
    seed = digest(call.id)
    names: list[str] = []
    if _kind(call) == "Interface":
        names = [f"{call.id}-{seed[:8]}.{call.text('serviceName').rpartition('.')[2]}.{call.region}.vpce.amazonaws.com"]
        names += [_host(call)] if call.inputs.get("privateDnsEnabled") else []
    return {
        "subnetConfigurations": placed,
        "networkInterfaceIds": [f"eni-0{digest(call.id + item['subnetId'])[:16]}" for item in placed],
        "dnsEntries": [{"dnsName": name, "hostedZoneId": f"Z{seed[:13].upper()}"} for name in names],
    }


def _outputs(call: Call) -> Properties:
    own = {"prefixListId": f"pl-{digest(_host(call))[:8]}"} if _kind(call) == "Gateway" else _interfaces(call)
    everyone = json.dumps({"Statement": [{"Action": "*", "Effect": "Allow", "Principal": "*", "Resource": "*"}]})
    return {
        **ec2("vpc-endpoint")(call),
        "state": "available",
        "requesterManaged": False,
        "policy": call.inputs.get("policy") or everyone,
        "vpcEndpointType": _kind(call),
        **own,
    }


def _leads_somewhere(call: Call) -> None:
    """Refuse an endpoint that leads nowhere, or to something that its type doesn't lead to."""
    required = _LEADS.get(_kind(call), "serviceName")
    given = [name for name in ("serviceName", *dict.fromkeys(_LEADS.values())) if call.inputs.get(name)]
    if given != [required]:
        raise refused(
            "",
            "one of `resource_configuration_arn,service_name,service_network_arn` must be specified",
            f"endpoints of the type {_kind(call)} have {required} alone",
        )


def _service(call: Call) -> None:
    """Refuse a service outside its region, or of another kind."""
    name, is_gateway = call.text("serviceName"), _kind(call) == "Gateway"
    if not name:
        return
    region = call.region if is_gateway else call.text("serviceRegion") or call.region
    is_regional = name.startswith(tuple(f"{first}.{region}." for first in _FIRST))
    is_known = is_regional or name in _GLOBAL or ".vpce-svc-" in name
    if not is_known or (is_gateway and name.removeprefix(f"com.amazonaws.{region}.") not in _GATEWAYS):
        raise refused(
            "InvalidServiceName",
            f"The Vpc Endpoint Service '{name}' does not exist",
            f"names start with com.amazonaws.{region}., and Gateway endpoints exist only for {', '.join(_GATEWAYS)}",
        )


def _private_names(call: Call) -> None:
    """Refuse private names in a VPC without DNS, and a second endpoint with the same name."""
    vpc = call.target("vpcId")
    if vpc is None or _kind(call) != "Interface" or not call.inputs.get("privateDnsEnabled"):
        return
    if not (vpc.outputs.get("enableDnsSupport") and vpc.outputs.get("enableDnsHostnames")):
        raise refused(
            "InvalidParameter",
            "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true for "
            f"{vpc.id}",
            "set both on the VPC",
        )
    for other in others(call):
        same = all(other.inputs.get(name) == call.inputs.get(name) for name in ("vpcId", "serviceName"))
        if same and other.inputs.get("privateDnsEnabled"):
            raise refused(
                "InvalidParameter",
                "private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
                f"{_host(call)} in the VPC {vpc.id}",
                f"{other.id} has it",
            )


def _one_per_zone(call: Call) -> None:
    zones: dict[str, str] = {}
    for subnet in named(call, "subnetIds[]"):
        zone = str(subnet.outputs["availabilityZone"])
        if zone in zones:
            raise refused(
                "DuplicateSubnetsInSameZone",
                f"Found another VPC endpoint subnet in the availability zone of {subnet.id}. VPC endpoint subnets "
                "should be in different availability zones supported by the VPC endpoint service.",
                f"{zones[zone]} is in {zone} too",
            )
        zones[zone] = subnet.id


def _one_per_table(call: Call) -> None:
    for other in others(call):
        shared = {record.id for record in named(call, "routeTableIds[]")} & {key[1] for key in other.targets}
        if other.inputs.get("serviceName") == call.text("serviceName") and shared and _kind(call) == "Gateway":
            raise refused(
                "RouteAlreadyExists",
                f"route table {min(shared)} already has a route with destination-prefix-list-id "
                f"{other.outputs.get('prefixListId')}",
                f"{other.id} gave it that route",
            )


_endpoint = ResourceType(
    token=ENDPOINT,
    noun="VPC endpoint",
    code="InvalidVpcEndpointId",
    identify=generated_id("vpce"),
    outputs=_outputs,
    where=("region",),
    replace_on=(
        *("vpcId", "serviceName", "vpcEndpointType", "serviceRegion"),
        *("resourceConfigurationArn", "serviceNetworkArn"),
    ),
    references=(
        IN_VPC,
        Reference("subnetIds[]", (SUBNET,)),
        Reference("securityGroupIds[]", (SECURITY_GROUP,)),
        Reference("routeTableIds[]", (ROUTE_TABLE,), holds=False),
    ),
    refuse=(
        _leads_somewhere,
        _service,
        _private_names,
        _one_per_zone,
        _one_per_table,
        policy_is_json("policy"),
        groups_match_subnets(("securityGroupIds[]",), lambda call: named(call, "subnetIds[]")),
    ),
    implied=lambda outputs: [(ENDPOINT, str(entry["dnsName"])) for entry in outputs.get("dnsEntries") or ()],
)


def _one_source(call: Call) -> None:
    given = [name for name in _LOGGED if call.inputs.get(name)]
    if len(given) != 1:
        raise refused(
            "",
            f"one of `{','.join(_LOGGED)}` must be specified",
            f"a flow log has exactly one of them, this one has {', '.join(given) or 'none'}",
        )


def _destination(call: Call) -> None:
    kind, text = call.text("logDestinationType") or "cloud-watch-logs", call.text("logDestination")
    if kind == "s3" and not text.startswith("arn:aws:s3:::"):
        raise refused(
            "InvalidParameter",
            f"LogDestination: {text} is not a valid S3 ARN",
            "write arn:aws:s3:::<bucket>[/<folder>/]",
        )
    alike = (*_LOGGED, "logDestination", "trafficType", "logFormat")
    for other in others(call):
        if all(other.inputs.get(name) == call.inputs.get(name) for name in alike):
            raise refused(
                "FlowLogAlreadyExists",
                "There is an existing Flow Log with the same configuration and log destination.",
                f"it is {other.id}; a replacement needs delete_before_replace",
            )


_flow_log = ResourceType(
    token="aws:ec2/flowLog:FlowLog",
    noun="flow log",
    code="InvalidFlowLogId",
    identify=generated_id("fl"),
    outputs=lambda call: {"arn": arn(call, "ec2", f"vpc-flow-log/{call.id}"), **tags(call)},
    where=("region",),
    replace_on=(
        *_LOGGED,
        *("deliverCrossAccountRole", "destinationOptions", "iamRoleArn", "logDestination", "logDestinationType"),
        *("logFormat", "maxAggregationInterval", "trafficType"),
    ),
    references=(
        Reference("vpcId", (VPC,), holds=False),
        Reference("subnetId", (SUBNET,), holds=False),
        Reference("eniId", (INTERFACE,), holds=False),
        # The bucket may belong to another account.
        Reference("logDestination", (BUCKET,), holds=False, local=False, optional=True),
    ),
    refuse=(_one_source, _destination),
)

TYPES = (_endpoint, _flow_log)
