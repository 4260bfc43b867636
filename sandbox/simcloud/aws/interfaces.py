"""Network interfaces, Elastic IP addresses and NAT gateways of AWS."""

from __future__ import annotations

from sandbox.simcloud.aws.addresses import claimed, first_free, private_name, public_address
from sandbox.simcloud.aws.common import arn, ec2, generated_id, named, others, refused, tags, vpc_of
from sandbox.simcloud.aws.security import groups_match_subnets
from sandbox.simcloud.aws.tokens import (
    ADDRESS,
    INSTANCE,
    INTERFACE,
    INTERNET_GATEWAY,
    NAT_GATEWAY,
    SECURITY_GROUP,
    SUBNET,
    VPC,
)
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, Value

ONE_SUBNET = Reference("subnetId", (SUBNET,))


def _interface_outputs(call: Call) -> Properties:
    given = [str(text) for text in call.inputs.get("privateIps") or call.inputs.get("privateIpLists") or ()]
    kept = list(call.old.outputs["privateIps"]) if call.old else []
    subnet = call.target("subnetId")
    addresses = given or kept or ([first_free(call, subnet)] if subnet else [])
    digits = digest(call.id)
    return {
        **ec2("network-interface")(call),
        "privateIp": addresses[0],
        "privateIps": addresses,
        "privateIpLists": addresses,
        "privateDnsName": private_name(call, addresses[0]),
        # Locally administered, like AWS's.
        "macAddress": ":".join(["02", *(digits[i : i + 2] for i in range(0, 10, 2))]),
        "interfaceType": call.inputs.get("interfaceType", "interface"),
    }


def _loses_the_first(old: Value, new: Value) -> bool:
    """Whether the primary address would be removed, which an interface keeps permanently."""
    return bool(new) and bool(old) and old[0] not in new


_interface = ResourceType(
    token=INTERFACE,
    noun="networkInterface",
    code="InvalidNetworkInterfaceID",
    identify=generated_id("eni"),
    outputs=_interface_outputs,
    where=("region",),
    replace_on=("subnetId", "interfaceType"),
    replace_if={"privateIps": _loses_the_first, "privateIpLists": _loses_the_first},
    references=(
        ONE_SUBNET,
        Reference("securityGroups[]", (SECURITY_GROUP,)),
        Reference("attachments[].instance", (INSTANCE,), holds=False),
    ),
    refuse=(
        groups_match_subnets(("securityGroups[]",), lambda call: named(call, "subnetId")),
        claimed("privateIps[]", lambda call: call.target("subnetId")),
        claimed("privateIpLists[]", lambda call: call.target("subnetId")),
    ),
    says={
        Reason.IN_USE: Saying(
            "api error InvalidNetworkInterface.InUse: Interface: [{value}] in use.",
            "delete first: {users}",
        )
    },
)


def _address_outputs(call: Call) -> Properties:
    address = public_address(call, call.id)
    zone = "compute-1" if call.region == "us-east-1" else f"{call.region}.compute"
    return {
        "arn": arn(call, "ec2", f"elastic-ip/{call.id}"),
        "allocationId": call.id,
        "domain": "vpc",
        "publicIp": address,
        "publicDns": f"ec2-{address.replace('.', '-')}.{zone}.amazonaws.com",
        **tags(call),
    }


_address = ResourceType(
    token=ADDRESS,
    noun="allocation",
    code="InvalidAllocationID",
    identify=generated_id("eipalloc"),
    outputs=_address_outputs,
    where=("region",),
    replace_on=("address", "customerOwnedIpv4Pool", "domain", "ipamPoolId", "networkBorderGroup", "publicIpv4Pool"),
    references=(
        Reference("instance", (INSTANCE,), holds=False),
        Reference("networkInterface", (INTERFACE,), holds=False),
    ),
    says={
        Reason.FULL: Saying(
            "api error AddressLimitExceeded: The maximum number of addresses has been reached.",
            "{have} are in {region}: ask for a larger quota than {most}",
        ),
        Reason.IN_USE: Saying(
            "api error InvalidIPAddress.InUse: Address {value} is in use.",
            "delete first: {users}",
        ),
    },
)


def _gateway_outputs(call: Call) -> Properties:
    subnet, address = call.target("subnetId"), call.target("allocationId")
    old = call.old.outputs if call.old else {}
    free = old.get("privateIp") or (first_free(call, subnet) if subnet else "")
    return {
        "privateIp": call.inputs.get("privateIp") or free,
        "publicIp": address.outputs["publicIp"] if address else "",
        "networkInterfaceId": f"eni-0{digest(call.id)[:16]}",
        "associationId": f"eipassoc-0{digest(call.id)[16:32]}" if address else "",
        "connectivityType": call.inputs.get("connectivityType", "public"),
        **tags(call),
    }


def _is_regional(call: Call) -> bool:
    return call.inputs.get("availabilityMode") == "regional"


def _whole_region(call: Call) -> None:
    """Check a regional gateway: it belongs to the VPC, and AWS chooses its place and addresses."""
    wrong = [name for name in ("subnetId", "allocationId", "privateIp") if call.inputs.get(name)]
    if _is_regional(call) and (wrong or not call.inputs.get("vpcId")):
        raise refused(
            "InvalidParameterCombination",
            f"availability_mode regional: {', '.join(wrong) or 'vpc_id is missing'}",
            "set vpcId, no subnet, and addresses only in availabilityZoneAddresses",
        )


def _its_address(call: Call) -> None:
    """Check that a public gateway has an Elastic IP address that nothing else uses."""
    address, is_public = call.text("allocationId"), call.inputs.get("connectivityType", "public") == "public"
    if is_public and not address and not _is_regional(call):
        raise refused(
            "MissingParameter",
            "The request must include the AllocationId parameter. Add the required parameter and retry the request.",
            "give it an Eip, or make its connectivityType private",
        )
    for other in others(call):
        if address and other.inputs.get("allocationId") == address:
            raise refused(
                "Resource.AlreadyAssociated",
                f"Elastic IP address [{address}] is already associated",
                f"{other.id} has it; a replacement that keeps its address needs delete_before_replace",
            )


def _internet_gateway(call: Call) -> None:
    subnet = call.target("subnetId")
    is_public = call.inputs.get("connectivityType", "public") == "public"
    vpc = vpc_of(subnet) if subnet else call.text("vpcId")
    if not vpc or not is_public:
        return
    if not any(gateway.inputs.get("vpcId") == vpc for gateway in call.world.of_type(INTERNET_GATEWAY)):
        raise refused(
            "Gateway.NotAttached",
            f"Network {vpc} has no Internet gateway attached",
            "the NAT gateway must depend on the internet gateway",
        )


_gateway = ResourceType(
    token=NAT_GATEWAY,
    noun="NAT gateway",
    code="InvalidNatGatewayID",
    identify=generated_id("nat"),
    outputs=_gateway_outputs,
    where=("region",),
    replace_on=("allocationId", "subnetId", "connectivityType", "privateIp", "vpcId", "availabilityMode"),
    references=(ONE_SUBNET, Reference("allocationId", (ADDRESS,)), Reference("vpcId", (VPC,))),
    refuse=(_whole_region, _its_address, _internet_gateway, claimed("privateIp", lambda call: call.target("subnetId"))),
)

TYPES = (_interface, _address, _gateway)
