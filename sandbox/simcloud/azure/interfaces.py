"""Network interfaces."""

from __future__ import annotations

from sandbox.simcloud.azure.addresses import PUBLIC_ADDRESS, SUBNET, addressed, static_addresses
from sandbox.simcloud.azure.common import folded, network_name, outputs, sole_user, under_group
from sandbox.simcloud.azure.load_balancing import LOAD_BALANCER
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.security_groups import SECURITY_GROUP
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import at

INTERFACE = "azure-native:network:NetworkInterface"


def _mac(call: Call) -> str:
    digits = digest(call.id).upper()
    return "-".join(["00", "0D", "3A", *(digits[i : i + 2] for i in (0, 2, 4))])


def _is_in_one_subnet(call: Call) -> None:
    """Azure/azure-sdk-for-java issue 1865."""
    if len({folded(subnet) for subnet in at(call.inputs, "ipConfigurations[].subnet.id")}) > 1:
        raise refused(
            "IpConfigurationsOnSameNicCannotUseDifferentSubnets",
            f"IP configurations on the network interface {call.id} can not belong to different subnets.",
            "make an interface for each subnet",
        )


_interface = ResourceType(
    token=INTERFACE,
    noun="NetworkInterface",
    identify=under_group("Microsoft.Network/networkInterfaces"),
    outputs=outputs(
        "Microsoft.Network/networkInterfaces",
        ipConfigurations=lambda call: addressed(call, "ipConfigurations"),
        macAddress=_mac,
    ),
    naming=network_name("networkInterfaceName"),
    where=("location",),
    replace_on=("resourceGroupName", "networkInterfaceName", "extendedLocation"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("ipConfigurations[].subnet.id", (SUBNET,)),
        Reference("ipConfigurations[].publicIPAddress.id", (PUBLIC_ADDRESS,)),
        Reference("ipConfigurations[].loadBalancerBackendAddressPools[].id", (LOAD_BALANCER,), holds=False),
        Reference("networkSecurityGroup.id", (SECURITY_GROUP,)),
    ),
    refuse=(
        _is_in_one_subnet,
        static_addresses("ipConfigurations"),
        sole_user(
            "ipConfigurations[].publicIPAddress.id",
            "PublicIPAddressInUse",
            "Resource {id} is referencing public IP address {value} that is already allocated to resource {user}.",
        ),
    ),
    says={
        Reason.IN_USE: Saying(
            'Status=400 Code="NicInUse" Message="Network Interface {value} is used by existing resource {user}. In order '
            'to delete the network interface, it must be dissociated from the resource."',
            "delete first: {users}",
        )
    },
)

TYPES = (_interface,)
