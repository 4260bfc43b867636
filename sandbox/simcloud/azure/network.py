"""Virtual networks of Azure."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.simcloud.azure.addresses import PREFIXES, SUBNET
from sandbox.simcloud.azure.common import folded, group_id, network_name, outputs, under_group
from sandbox.simcloud.azure.nat import NAT_GATEWAY, ROUTE_TABLE
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.security_groups import SECURITY_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.refusals import apart, apart_within, inside, networks, overlap, size_of_range
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at, plain

NETWORK = "azure-native:network:VirtualNetwork"
GATEWAY_SUBNET = "GatewaySubnet"

_INLINE = ("subnets[].addressPrefix", "subnets[].addressPrefixes[]")


def network_id(call: Call, name: str) -> str:
    """Return the ID of a virtual network in the call's resource group."""
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


def _inline_subnets_are_inside(call: Call) -> None:
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
            for network in networks(text for path in PREFIXES for text in at(call.inputs, path)):
                if network.overlaps(existing):
                    raise overlap(call, network, existing, str(subnet["id"]), call.region)


def _keeps_prefixes_in_use(call: Call) -> None:
    if call.old is None:
        return
    before, after = (
        [text for path in PREFIXES for text in at(inputs, path)] for inputs in (call.old.inputs, call.inputs)
    )
    users = call.world.users(call.old)
    if before != after and users:
        raise call.refusal(Reason.FIXED, path=PREFIXES[0], value=", ".join(before), users=str(users[0]))


def _keeps_inline_subnets_in_use(call: Call) -> None:
    """Refuse to delete or change inline subnets in use; a subnet missing from the list would be deleted."""
    if call.old is None:
        return
    before, after = (
        {subnet.get("name"): [text for path in PREFIXES for text in at(subnet, path)] for subnet in inputs}
        for inputs in (
            plain(call.old.inputs).get("subnets") or (),
            call.inputs.get("subnets") or (),
        )
    )
    for name, prefixes in before.items():
        id_ = f"{call.id}/subnets/{name}"
        users = [user for user in call.world.users(call.old) if folded(id_) in folded(plain(user.inputs))]
        if users and name not in after:
            raise refused(
                "InUseSubnetCannotBeDeleted",
                f"Subnet {name} is in use by {users[0].id} and cannot be deleted. In order to delete the subnet, delete "
                "all the resources within the subnet.",
                f"delete first: {', '.join(map(str, users))}",
            )
        if users and after[name] != prefixes:
            raise refused(
                "InUsePrefixCannotBeDeleted",
                f"IpPrefix {', '.join(prefixes)} on Subnet {name} has active allocations and cannot be deleted.",
                f"move or delete first: {users[0]}",
            )


def _gateway_subnets_are_bare(call: Call) -> None:
    """Refuse what a GatewaySubnet cannot have ("About VPN Gateway configuration settings", "What is NAT Gateway")."""
    inline = [subnet for subnet in call.inputs.get("subnets") or () if subnet.get("name") == GATEWAY_SUBNET]
    for subnet in [call.inputs] if call.name == GATEWAY_SUBNET else inline:
        for path in ("networkSecurityGroup", "natGateway"):
            if subnet.get(path):
                raise refused(
                    BAD_REQUEST,
                    f"Subnet {GATEWAY_SUBNET} of {call.id} cannot have a {path}: it is a gateway's.",
                    f"leave out {path}",
                )


_network = ResourceType(
    token=NETWORK,
    noun="VirtualNetwork",
    identify=under_group("Microsoft.Network/virtualNetworks"),
    outputs=outputs("Microsoft.Network/virtualNetworks", subnets=_inline_subnets),
    naming=network_name("virtualNetworkName", 64),
    where=("location",),
    replace_on=("resourceGroupName", "virtualNetworkName", "extendedLocation"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("subnets[].networkSecurityGroup.id", (SECURITY_GROUP,)),
        Reference("subnets[].natGateway.id", (NAT_GATEWAY,)),
        Reference("subnets[].routeTable.id", (ROUTE_TABLE,)),
    ),
    refuse=(
        size_of_range("addressSpace.addressPrefixes[]", 2, 29),
        _inline_subnets_are_inside,
        apart_within(*_INLINE),
        _keeps_inline_subnets_in_use,
        _gateway_subnets_are_bare,
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
    naming=network_name("subnetName"),
    replace_on=("resourceGroupName", "virtualNetworkName", "subnetName"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("virtualNetworkName", (NETWORK,), holds=False, local=False, resolve=network_id),
        Reference("networkSecurityGroup.id", (SECURITY_GROUP,)),
        Reference("natGateway.id", (NAT_GATEWAY,)),
        Reference("routeTable.id", (ROUTE_TABLE,)),
    ),
    refuse=(
        size_of_range(PREFIXES[0], 2, 29),
        size_of_range(PREFIXES[1], 2, 29),
        inside(PREFIXES[0], "virtualNetworkName", "addressSpace.addressPrefixes[]"),
        inside(PREFIXES[1], "virtualNetworkName", "addressSpace.addressPrefixes[]"),
        apart("virtualNetworkName", *PREFIXES),
        _apart_from_inline_subnets,
        _keeps_prefixes_in_use,
        _gateway_subnets_are_bare,
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

TYPES = (_network, _subnet)
