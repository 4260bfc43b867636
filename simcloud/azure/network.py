"""Networks of Azure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_network

from simcloud.azure.common import group_id, outputs, under_group
from simcloud.azure.resources import IN_GROUP
from simcloud.identifiers import digest
from simcloud.refusals import apart, apart_within, inside, networks, overlap, size_of_range
from simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from simcloud.values import Properties, at

NETWORK = "azure-native:network:VirtualNetwork"
SUBNET = "azure-native:network:Subnet"
SECURITY_GROUP = "azure-native:network:NetworkSecurityGroup"
INTERFACE = "azure-native:network:NetworkInterface"

_WORDS = (
    "It must begin with a word character, and it must end with a word character or with '_'. The name may contain word "
    "characters or '.', '-', '_'."
)
_PREFIXES = ("addressPrefix", "addressPrefixes[]")
_INLINE = ("subnets[].addressPrefix", "subnets[].addressPrefixes[]")


def _named(property_: str, longest: int = 80) -> Naming:
    return Naming(property_, re.compile(r"[a-zA-Z0-9]([\w.-]*\w)?"), longest, _WORDS)


def network_id(call: Call, name: str) -> str:
    """The id of a virtual network of the call's resource group."""
    group = group_id(call, call.text("resourceGroupName"))
    return f"{group}/providers/Microsoft.Network/virtualNetworks/{name}"


def _inline_subnets(call: Call) -> list[Properties]:
    given = call.inputs.get("subnets") or ()
    return [
        {**subnet, "id": f"{call.id}/subnets/{subnet.get('name')}", "provisioningState": "Succeeded"}
        for subnet in given
    ]


def _with_subnets(properties: Properties) -> Iterable[tuple[str, str]]:
    return [(SUBNET, subnet["id"]) for subnet in properties.get("subnets") or ()]


def _inline_subnets_lie_inside(call: Call) -> None:
    allowed = list(networks(at(call.inputs, "addressSpace.addressPrefixes[]")))
    for network in networks(text for path in _INLINE for text in at(call.inputs, path)):
        if not any(network.subnet_of(outer) for outer in allowed):
            raise call.refusal(
                Reason.OUTSIDE, value=str(network), parent=call.name, ranges=", ".join(map(str, allowed))
            )


def _apart_from_inline_subnets(call: Call) -> None:
    owner = call.target("virtualNetworkName")
    for subnet in at(owner.outputs, "subnets[]") if owner else ():
        for existing in networks([*at(subnet, "addressPrefix"), *at(subnet, "addressPrefixes[]")]):
            for network in networks(text for path in _PREFIXES for text in at(call.inputs, path)):
                if network.overlaps(existing):
                    raise overlap(call, network, existing, str(subnet["id"]), call.region)


def _keeps_prefixes_in_use(call: Call) -> None:
    if call.old is None:
        return
    before, after = (
        [text for path in _PREFIXES for text in at(inputs, path)] for inputs in (call.old.inputs, call.inputs)
    )
    users = call.world.users(call.old)
    if before != after and users:
        raise call.refusal(Reason.FIXED, path=_PREFIXES[0], value=", ".join(before), users=str(users[0]))


def _addresses(call: Call) -> list[Properties]:
    """The interface's IP configurations; Azure keeps the first four addresses of a subnet, and the last."""
    old = {config.get("name"): config for config in at(call.old.outputs, "ipConfigurations[]")} if call.old else {}
    made = []
    for config in call.inputs.get("ipConfigurations") or ():
        address = config.get("privateIPAddress") or old.get(config.get("name"), {}).get("privateIPAddress")
        made.append(
            {
                **config,
                "id": f"{call.id}/ipConfigurations/{config.get('name')}",
                "privateIPAddress": address or _free_address(call, next(at(config, "subnet.id"), "")),
            }
        )
    return made


def _free_address(call: Call, subnet: str) -> str:
    (found, *_) = call.world.find((SUBNET,), call.cloud.folded(subnet))
    inline = next((each for each in at(found.outputs, "subnets[]") if each["id"] == subnet), found.outputs)
    prefix = next(text for path in _PREFIXES for text in at(inline, path))
    taken = {
        text
        for other in call.world.of_type(INTERFACE)
        for config in at(other.outputs, "ipConfigurations[]")
        if next(at(config, "subnet.id"), "") == subnet
        for text in at(config, "privateIPAddress")
    }
    hosts = ip_network(prefix)
    return next(str(hosts[i]) for i in range(4, hosts.num_addresses - 1) if str(hosts[i]) not in taken)


def _mac(call: Call) -> str:
    digits = digest(call.id).upper()
    return "-".join(["00", "0D", "3A", *(digits[i : i + 2] for i in (0, 2, 4))])


_network = ResourceType(
    token=NETWORK,
    noun="VirtualNetwork",
    identify=under_group("Microsoft.Network/virtualNetworks"),
    outputs=outputs("Microsoft.Network/virtualNetworks", subnets=_inline_subnets),
    naming=_named("virtualNetworkName", 64),
    where=("location",),
    replace_on=("resourceGroupName", "virtualNetworkName", "extendedLocation"),
    recomputed=("etag",),
    references=(IN_GROUP,),
    refuse=(
        size_of_range("addressSpace.addressPrefixes[]", 2, 29),
        _inline_subnets_lie_inside,
        apart_within(*_INLINE),
    ),
    implied=_with_subnets,
    says={
        Reason.MISSING: Saying(
            'Status=404 Code="ParentResourceNotFound" Message="Failed to perform \'write\' on resource(s) of type '
            "'virtualNetworks/subnets', because the parent resource '{value}' could not be found.\"",
            "create it first",
        )
    },
)

_subnet = ResourceType(
    token=SUBNET,
    noun="Subnet",
    identify=lambda call: f"{network_id(call, call.text('virtualNetworkName'))}/subnets/{call.name}",
    outputs=outputs("Microsoft.Network/virtualNetworks/subnets"),
    naming=_named("subnetName"),
    replace_on=("resourceGroupName", "virtualNetworkName", "subnetName"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("virtualNetworkName", (NETWORK,), holds=False, local=False, resolve=network_id),
        Reference("networkSecurityGroup.id", (SECURITY_GROUP,)),
    ),
    refuse=(
        size_of_range(_PREFIXES[0], 2, 29),
        size_of_range(_PREFIXES[1], 2, 29),
        inside(_PREFIXES[0], "virtualNetworkName", "addressSpace.addressPrefixes[]"),
        inside(_PREFIXES[1], "virtualNetworkName", "addressSpace.addressPrefixes[]"),
        apart("virtualNetworkName", *_PREFIXES),
        _apart_from_inline_subnets,
        _keeps_prefixes_in_use,
    ),
    says={
        Reason.IN_USE: Saying(
            'Status=400 Code="InUseSubnetCannotBeDeleted" Message="Subnet {value} is in use by {user} and cannot be '
            'deleted. In order to delete the subnet, delete all the resources within the subnet."',
            "delete first: {users}",
        ),
        Reason.FIXED: Saying(
            'Status=400 Code="InUsePrefixCannotBeDeleted" Message="IpPrefix {value} on Subnet {name} has active '
            'allocations and cannot be deleted."',
            "move or delete first: {users}",
        ),
    },
)

_security_group = ResourceType(
    token=SECURITY_GROUP,
    noun="NetworkSecurityGroup",
    identify=under_group("Microsoft.Network/networkSecurityGroups"),
    outputs=outputs("Microsoft.Network/networkSecurityGroups"),
    naming=_named("networkSecurityGroupName"),
    where=("location",),
    replace_on=("resourceGroupName", "networkSecurityGroupName"),
    recomputed=("etag",),
    references=(IN_GROUP,),
)

_interface = ResourceType(
    token=INTERFACE,
    noun="NetworkInterface",
    identify=under_group("Microsoft.Network/networkInterfaces"),
    outputs=outputs("Microsoft.Network/networkInterfaces", ipConfigurations=_addresses, macAddress=_mac),
    naming=_named("networkInterfaceName"),
    where=("location",),
    replace_on=("resourceGroupName", "networkInterfaceName", "extendedLocation"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("ipConfigurations[].subnet.id", (SUBNET,)),
        Reference("networkSecurityGroup.id", (SECURITY_GROUP,)),
    ),
)

TYPES = (_network, _subnet, _security_group, _interface)
