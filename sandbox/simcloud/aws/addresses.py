"""Addresses: private ones inside subnets, and public ones from AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network, ip_network

from sandbox.simcloud.aws.common import refused
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import at, plain
from sandbox.simcloud.world import Record

# "Subnet CIDR blocks": AWS reserves the first four addresses of a subnet and its last one.
_FIRST, _LAST = 4, 1
# Ranges reserved for documentation (RFC 5737).
_PUBLIC = (IPv4Network("198.51.100.0/24"), IPv4Network("203.0.113.0/24"))
_PUBLIC_OUTPUTS = ("publicIp", "tunnel1Address", "tunnel2Address")


def first_free(call: Call, subnet: Record) -> str:
    """Return the address that AWS assigns when none is requested. AWS does not document which; here it is the first free one."""
    range_ = _range(subnet)
    taken = set(_taken(call, subnet))
    hosts = range(_FIRST, range_.num_addresses - _LAST)
    free = next((address for i in hosts if (address := str(range_[i])) not in taken), None)
    if free is None:
        raise refused(
            "InsufficientFreeAddressesInSubnet",
            f"The specified subnet does not have enough free addresses to satisfy the request: {subnet.id} is full.",
            f"choose a subnet other than {range_}, or a larger one",
        )
    return free


def claim(call: Call, subnet: Record, text: str, path: str) -> None:
    """Refuse an address that is outside the subnet, reserved by AWS, or in use."""
    range_ = _range(subnet)
    try:
        address = IPv4Address(text)
    except AddressValueError:
        raise refused(
            "InvalidParameterValue", f"invalid value for IP address: {text}", "give an IPv4 address"
        ) from None
    if address not in range_:
        raise refused(
            "InvalidParameterValue",
            "Address does not fall within the subnet's address range",
            f"{path} {text} must be in {range_} of {subnet.id}",
        )
    place = int(address) - int(range_.network_address)
    if place < _FIRST or place >= range_.num_addresses - _LAST:
        raise refused(
            "InvalidParameterValue",
            f"Address {text} is in subnet's reserved address range",
            f"AWS reserves the first four addresses of {range_} and the last; {path} must be another",
        )
    holder = _taken(call, subnet).get(text)
    if holder is not None:
        raise refused(
            "InvalidIPAddress.InUse",
            f"Address {text} is in use.",
            f"{holder} has it; a replacement that keeps its address needs delete_before_replace",
        )


def public_address(call: Call, seed: str, output: str = "publicIp") -> str:
    """Return a public address; a resource that already has one keeps it."""
    if call.old is not None and call.old.outputs.get(output):
        return str(call.old.outputs[output])
    taken = {str(record.outputs.get(name)) for record in call.world for name in _PUBLIC_OUTPUTS}
    hosts = [str(host) for range_ in _PUBLIC for host in range_.hosts()]
    start = sum(seed.encode()) % len(hosts)
    return next(host for host in (*hosts[start:], *hosts[:start]) if host not in taken)


def private_name(call: Call, address: str) -> str:
    """Return the DNS name of an address inside a VPC."""
    domain = "ec2.internal" if call.region == "us-east-1" else f"{call.region}.compute.internal"
    return f"ip-{address.replace('.', '-')}.{domain}"


def claimed(path: str, subnet: Callable[[Call], Record | None]) -> Callable[[Call], None]:
    """Return a rule: the addresses at `path` are in the subnet, and free."""

    def rule(call: Call) -> None:
        parent = subnet(call)
        for text in at(call.inputs, path):
            if parent is not None:
                claim(call, parent, str(text), path)

    return rule


def _taken(call: Call, subnet: Record) -> dict[str, str]:
    """Return address in a subnet -> ID of the resource that has it."""
    return {
        address: record.id
        for record in call.world
        if subnet.key in record.targets and record.id != call.id
        for address in _addresses(record, subnet)
    }


def _addresses(record: Record, subnet: Record) -> Iterator[str]:
    outputs = plain(record.outputs)
    yield from (str(text) for path in ("privateIp", "privateIps[]") for text in at(outputs, path))
    for path, property_ in (("subnetMappings[]", "privateIpv4Address"), ("subnetConfigurations[]", "ipv4")):
        for mapping in at(outputs, path):
            if mapping.get("subnetId") == subnet.id and mapping.get(property_):
                yield str(mapping[property_])


def _range(subnet: Record) -> IPv4Network:
    network = ip_network(str(subnet.outputs["cidrBlock"]))
    assert isinstance(network, IPv4Network)
    return network
