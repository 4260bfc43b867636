"""Private addresses of subnets, and public addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from sandbox.simcloud.azure.common import find, folded, network_name, outputs, under_group
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reason, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

SUBNET = "azure-native:network:Subnet"
PUBLIC_ADDRESS = "azure-native:network:PublicIPAddress"

PREFIXES = ("addressPrefix", "addressPrefixes[]")

KEPT_FIRST, KEPT_LAST = 4, 1
"""Azure reserves the first four addresses of a subnet and the last ("Azure Virtual Network FAQ")."""


def range_of(call: Call, subnet: object) -> IPv4Network | None:
    """Return the first range of a subnet, declared as a resource or as part of its network."""
    record = find(call, (SUBNET,), subnet)
    if record is None:
        return None
    inline = (part for part in at(record.outputs, "subnets[]") if folded(part["id"]) == folded(subnet))
    prefixes = (text for path in PREFIXES for text in at(next(inline, record.outputs), path))
    return next((IPv4Network(text) for text in prefixes), None)


def is_kept(network: IPv4Network, address: IPv4Address) -> bool:
    """Whether Azure reserves an address of a subnet."""
    offset = int(address) - int(network.network_address)
    return offset < KEPT_FIRST or offset >= network.num_addresses - KEPT_LAST


def taken_addresses(call: Call, subnet: object) -> dict[str, Record]:
    """Return address -> the interface, load balancer or private endpoint that has it, without the call's own resource."""
    owner = find(call, (SUBNET,), subnet)
    return {
        address: user
        for user in (call.world.users(owner) if owner else ())
        if user.id != call.id
        for address in _addresses(user.outputs, subnet)
    }


def _addresses(holder: Properties, subnet: object) -> Iterator[str]:
    for path in ("ipConfigurations[]", "frontendIPConfigurations[]"):
        for part in at(holder, path):
            if folded(next(at(part, "subnet.id"), "")) == folded(subnet):
                yield from at(part, "privateIPAddress")
    if folded(next(at(holder, "subnet.id"), "")) == folded(subnet):
        yield from at(holder, "customDnsConfigs[].ipAddresses[]")


def addressed(call: Call, property_: str) -> list[Properties]:
    """Return the parts of a resource, each with an address in its subnet: the given, the previous, or a free one."""
    before = {part.get("name"): part for part in at(call.old.outputs, f"{property_}[]")} if call.old else {}
    completed: list[Properties] = []
    for part in call.inputs.get(property_) or ():
        whole = {**part, "id": f"{call.id}/{property_}/{part.get('name')}", "provisioningState": "Succeeded"}
        subnet = next(at(part, "subnet.id"), None)
        if subnet is not None:
            old = before.get(part.get("name"), {})
            kept = old.get("privateIPAddress") if next(at(old, "subnet.id"), None) == subnet else None
            given = part.get("privateIPAddress") or kept
            own = [other["privateIPAddress"] for other in completed if "privateIPAddress" in other]
            whole["privateIPAddress"] = given or free_address(call, subnet, own)
            whole["privateIPAllocationMethod"] = part.get("privateIPAllocationMethod") or "Dynamic"
        completed.append(whole)
    return completed


def free_address(call: Call, subnet: object, besides: Iterable[str] = ()) -> str:
    """Return the lowest free address."""
    network = range_of(call, subnet)
    taken = {*taken_addresses(call, subnet), *besides}
    hosts = range(KEPT_FIRST, network.num_addresses - KEPT_LAST) if network else range(0)
    free = (str(network[i]) for i in hosts if network and str(network[i]) not in taken)
    address = next(free, None)
    if address is None:
        raise refused(
            "SubnetIsFull",
            f"Subnet {str(subnet).rpartition('/')[2]} with address prefix {network} does not have enough capacity for 1 "
            "IP addresses.",
            "widen the subnet",
        )
    return address


def static_addresses(property_: str, address: str = "privateIPAddress", subnet: str = "subnet.id") -> Rule:
    """Return a rule: given addresses of the parts at `property_` are in their subnet, not reserved by Azure, and free.

    subnet: path of the subnet in the part; in the resource itself if it starts with a slash.
    """

    def rule(call: Call) -> None:
        for part in call.inputs.get(property_) or ():
            given = next(at(part, address), None)
            holder = call.inputs if subnet.startswith("/") else part
            subnet_id = next(at(holder, subnet.lstrip("/")), None)
            if given is not None and subnet_id is not None:
                _fits(call, str(given), str(subnet_id))
            elif given is None and part.get("privateIPAllocationMethod") == "Static" and subnet_id is not None:
                raise refused(
                    "IpConfigurationWithStaticAllocationMustHaveAddress",
                    f"{call.id}: IP configuration {part.get('name')} has the allocation method Static and no address.",
                    "give it privateIPAddress, or make it Dynamic",
                )

    return rule


def _fits(call: Call, text: str, subnet: str) -> None:
    network = range_of(call, subnet)
    address = IPv4Address(text)
    name = subnet.rpartition("/")[2]
    if network is None:
        return
    if address not in network:
        raise refused(
            "PrivateIPAddressNotInSubnet",
            f"Private static IP address {text} does not belong to the range of subnet prefix {network}.",
            f"choose one of subnet {name}",
        )
    if is_kept(network, address):
        raise refused(
            "PrivateIPAddressInReservedRange",
            f"Private static IP address {text} falls within reserved IP range of subnet prefix {network}.",
            f"Azure reserves the first {KEPT_FIRST} addresses and the last; the first free one is {network[KEPT_FIRST]}",
        )
    holder = taken_addresses(call, subnet).get(text)
    if holder is not None:
        raise refused(
            "PrivateIPAddressIsAllocated",
            f"IP configuration {holder.id} is using the private IP address {text} which is already allocated to "
            f"resource {holder.id}.",
            f"{holder} has it",
        )


def _public_places(call: Call) -> Iterable[Place]:
    return [Place("azure", call.region, str(zone)) for zone in at(call.inputs, "zones[]")]


def _is_standard(call: Call) -> None:
    """Refuse Basic, which was retired on 30 September 2025 ("Upgrading a Basic public IP address to Standard SKU")."""
    if not call.text("sku.name").startswith("Standard"):
        raise refused(
            "IPv4BasicSkuPublicIpCountLimitReached",
            "Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this region.",
            "set sku.name to Standard; the default is Basic",
        )
    if call.text("publicIPAllocationMethod") != "Static":
        raise refused(
            "StandardAndHigherSkuPublicIPAddressesMustBeStatic",
            f"Standard sku publicIp {call.id} must have AllocationMethod set to Static.",
            "set publicIPAllocationMethod to Static",
        )


def _public(call: Call) -> str:
    """Return an address of the range for benchmarks (RFC 2544), which is in no real use."""
    digits = digest(call.id)
    return str(IPv4Network("198.18.0.0/15")[int(digits[:8], 16) % 131072])


ZONES_STAY = Saying(
    'Status=400 Code="ResourceAvailabilityZonesCannotBeModified" Message="Resource {id} has an existing availability '
    "zone constraint and the request has another, which do not match. Zones cannot be added/updated/removed once the "
    'resource is created. The resource cannot be updated from regional to zonal or vice-versa."',
    "replace it: add {path} to replace_on_changes",
)

_public_address = ResourceType(
    token=PUBLIC_ADDRESS,
    noun="Public IP address",
    identify=under_group("Microsoft.Network/publicIPAddresses"),
    outputs=outputs("Microsoft.Network/publicIPAddresses", ipAddress=_public),
    naming=network_name("publicIpAddressName"),
    where=("location",),
    # From the provider's own table of properties that force a replacement.
    replace_on=("resourceGroupName", "publicIpAddressName", "publicIPAddressVersion", "publicIPPrefix", "sku"),
    fixed=("zones",),
    recomputed=("etag",),
    references=(IN_GROUP,),
    refuse=(_is_standard, offered(_public_places)),
    says={
        Reason.FULL: Saying(
            'Status=400 Code="PublicIPCountLimitReached" Message="Cannot create more than {most} public IP addresses for '
            'this subscription in this region."',
            "{have} are in {region}: ask for a larger quota",
        ),
        Reason.FIXED: ZONES_STAY,
        Reason.IN_USE: Saying(
            'Status=400 Code="PublicIPAddressCannotBeDeleted" Message="Public IP address {value} can not be deleted '
            "since it is still allocated to resource {user}. In order to delete the public IP, disassociate/detach the "
            'Public IP address from the resource."',
            "delete first: {users}",
        ),
    },
)

TYPES = (_public_address,)
