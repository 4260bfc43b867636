"""Counts what costs money in a stack: machines, disks, public addresses, gateways. It has no prices.

Prices differ between accounts, contracts and days. A plan has no traffic, requests or bucket contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

Inputs = Mapping[str, Any]


class CostKind(StrEnum):
    """Kinds of items, in display order."""

    MACHINE = "machines"
    DISK = "disks"
    PUBLIC_ADDRESS = "public addresses"
    LOAD_BALANCER = "load balancers"
    NAT = "NAT gateways"
    VPN_GATEWAY = "VPN gateways"
    VPN_CONNECTION = "VPN connections"
    ENDPOINT = "private endpoints"
    KEY = "keys"
    BUCKET = "buckets"


@dataclass(frozen=True)
class CostItem:
    """A number of equal things. most: the maximum if a group scales automatically. gib: size of each, for disks.

    what: its type, "" for none.
    """

    kind: CostKind
    what: str = ""
    least: int = 1
    most: int = 1
    gib: int = 0

    def times(self, least: int, most: int) -> CostItem:
        return replace(self, least=self.least * least, most=self.most * most)


@dataclass(frozen=True)
class PricedResource:
    """The properties of a resource that matter here."""

    type: str
    name: str
    parent: str
    inputs: Inputs


def items(resources: Iterable[PricedResource]) -> tuple[CostItem, ...]:
    """Return the totals of all resources, by kind and type."""
    everything = tuple(resources)
    sums: dict[tuple[CostKind, str], CostItem] = {}
    for resource in everything:
        for item in _items(resource, everything):
            key = (item.kind, item.what)
            have = sums.get(key, replace(item, least=0, most=0))
            sums[key] = replace(have, least=have.least + item.least, most=have.most + item.most)
    order = list(CostKind)
    return tuple(sorted(sums.values(), key=lambda item: (order.index(item.kind), item.what)))


def _items(resource: PricedResource, everything: tuple[PricedResource, ...]) -> Iterator[CostItem]:
    if resource.type in _SIMPLE:
        yield CostItem(_SIMPLE[resource.type])
    elif resource.type in _GROUPS:
        yield from _GROUPS[resource.type](resource, everything)
    elif resource.type in _ALONE:
        yield from _ALONE[resource.type](resource.inputs)


# One item per resource, whatever its inputs.
_SIMPLE = {
    "aws:ec2/eip:Eip": CostKind.PUBLIC_ADDRESS,
    "aws:ec2/vpnConnection:VpnConnection": CostKind.VPN_CONNECTION,
    "aws:ec2/vpnGateway:VpnGateway": CostKind.VPN_GATEWAY,
    "aws:kms/key:Key": CostKind.KEY,
    "aws:lb/loadBalancer:LoadBalancer": CostKind.LOAD_BALANCER,
    "aws:s3/bucket:Bucket": CostKind.BUCKET,
    "azure-native:keyvault:Key": CostKind.KEY,
    "azure-native:network:LoadBalancer": CostKind.LOAD_BALANCER,
    "azure-native:network:NatGateway": CostKind.NAT,
    "azure-native:network:PrivateEndpoint": CostKind.ENDPOINT,
    "azure-native:network:PublicIPAddress": CostKind.PUBLIC_ADDRESS,
    "azure-native:network:VirtualNetworkGateway": CostKind.VPN_GATEWAY,
    "azure-native:network:VirtualNetworkGatewayConnection": CostKind.VPN_CONNECTION,
    "azure-native:storage:BlobContainer": CostKind.BUCKET,
    "gcp:compute/forwardingRule:ForwardingRule": CostKind.LOAD_BALANCER,
    "gcp:compute/haVpnGateway:HaVpnGateway": CostKind.VPN_GATEWAY,
    "gcp:compute/routerNat:RouterNat": CostKind.NAT,
    "gcp:compute/vPNTunnel:VPNTunnel": CostKind.VPN_CONNECTION,
    "gcp:kms/cryptoKey:CryptoKey": CostKind.KEY,
    "gcp:storage/bucket:Bucket": CostKind.BUCKET,
    "pulumi-python:dynamic/lab:LoadBalancer": CostKind.LOAD_BALANCER,
}

_GIB = 2**30
_MOST_WORDS = re.compile(r"[A-Za-z0-9][\w./-]{0,80}")
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What the engine writes for values that are unknown before the cloud creates them."""


def _word(value: object) -> str:
    """Return the value if it looks like a cloud's name for a type; "" for anything else, such as a secret."""
    return (
        value.rpartition("/")[2]
        if isinstance(value, str) and value != _UNKNOWN and _MOST_WORDS.fullmatch(value)
        else ""
    )


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _at(inputs: object, *path: str) -> Any:
    """Return the value at a path, None if there is none. Of a list, take the first item."""
    for name in path:
        inputs = inputs[0] if isinstance(inputs, list) and inputs else inputs
        inputs = inputs.get(name) if isinstance(inputs, Mapping) else None
    return inputs


def _list(inputs: object, *path: str) -> list[Any]:
    value = _at(inputs, *path)
    return value if isinstance(value, list) else []


def _machine(kind: object) -> CostItem:
    return CostItem(CostKind.MACHINE, _word(kind) or "of a type not known yet")


def _disk(kind: object, gib: object, iops: object = None) -> CostItem:
    size = _number(gib)
    facts = [_word(kind) or "of the default kind", f"{size} GiB" if size else "as large as the image"]
    return CostItem(CostKind.DISK, " ".join(facts) + (f", {_number(iops)} IOPS" if _number(iops) else ""), gib=size)


def _aws_instance(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(inputs.get("instanceType"))
    root = inputs.get("rootBlockDevice")
    yield _disk(_at(root, "volumeType"), _at(root, "volumeSize"), _at(root, "iops"))
    for disk in _list(inputs, "ebsBlockDevices"):
        yield _disk(_at(disk, "volumeType"), _at(disk, "volumeSize"), _at(disk, "iops"))


def _aws_template(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(inputs.get("instanceType"))
    for mapping in _list(inputs, "blockDeviceMappings"):
        ebs = _at(mapping, "ebs")
        yield _disk(_at(ebs, "volumeType"), _at(ebs, "volumeSize"), _at(ebs, "iops"))


def _aws_volume(inputs: Inputs) -> Iterator[CostItem]:
    yield _disk(inputs.get("type"), inputs.get("size"), inputs.get("iops"))


def _aws_nat(inputs: Inputs) -> Iterator[CostItem]:
    """A regional gateway is in every zone with hosts and is billed for each ("Regional NAT gateways")."""
    yield CostItem(
        CostKind.NAT, "regional, one for each zone with hosts" if inputs.get("availabilityMode") == "regional" else ""
    )


def _aws_endpoint(inputs: Inputs) -> Iterator[CostItem]:
    """Endpoints for S3 and DynamoDB are routes and free (AWS PrivateLink pricing); others are billed per subnet."""
    if inputs.get("vpcEndpointType") == "Interface":
        subnets = len(_list(inputs, "subnetIds")) or 1
        yield CostItem(CostKind.ENDPOINT, least=subnets, most=subnets)


def _gcp_template(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(inputs.get("machineType"))
    for disk in _list(inputs, "disks"):
        yield _disk(_at(disk, "diskType"), _at(disk, "diskSizeGb"), _at(disk, "provisionedIops"))


def _gcp_instance(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(inputs.get("machineType"))
    boot = _at(inputs, "bootDisk", "initializeParams")
    yield _disk(_at(boot, "type"), _at(boot, "size"), _at(boot, "provisionedIops"))
    for disk in _list(inputs, "scratchDisks"):
        yield _disk("local-ssd", _at(disk, "size"))


def _gcp_disk(inputs: Inputs) -> Iterator[CostItem]:
    yield _disk(inputs.get("type"), inputs.get("size"), inputs.get("provisionedIops"))


def _gcp_address(inputs: Inputs) -> Iterator[CostItem]:
    """An address is public by default (Compute API, addresses.addressType)."""
    if inputs.get("addressType") != "INTERNAL":
        yield CostItem(CostKind.PUBLIC_ADDRESS)


def _azure_storage(profile: object) -> Iterator[CostItem]:
    for disk in [_at(profile, "osDisk"), *_list(profile, "dataDisks")]:
        if isinstance(disk, Mapping) and disk.get("createOption") != "Attach":
            if _at(disk, "diffDiskSettings", "option") == "Local":
                continue  # on the machine's local disk, which is included in its price
            yield _disk(_at(disk, "managedDisk", "storageAccountType"), disk.get("diskSizeGB"))


def _azure_machine(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(_at(inputs, "hardwareProfile", "vmSize"))
    yield from _azure_storage(inputs.get("storageProfile"))


def _azure_disk(inputs: Inputs) -> Iterator[CostItem]:
    yield _disk(_at(inputs, "sku", "name"), inputs.get("diskSizeGB"), inputs.get("diskIOPSReadWrite"))


def _lab_host(inputs: Inputs) -> Iterator[CostItem]:
    yield CostItem(CostKind.MACHINE, f"host of {_number(inputs.get('memory_bytes')) / _GIB:g} GiB")


def _lab_volume(_: Inputs) -> Iterator[CostItem]:
    yield CostItem(CostKind.DISK, "folder")


_ALONE: dict[str, Callable[[Inputs], Iterator[CostItem]]] = {
    "aws:ebs/volume:Volume": _aws_volume,
    "aws:ec2/instance:Instance": _aws_instance,
    "aws:ec2/natGateway:NatGateway": _aws_nat,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _aws_endpoint,
    "azure-native:compute:Disk": _azure_disk,
    "azure-native:compute:VirtualMachine": _azure_machine,
    "gcp:compute/address:Address": _gcp_address,
    "gcp:compute/disk:Disk": _gcp_disk,
    "gcp:compute/globalAddress:GlobalAddress": _gcp_address,
    "gcp:compute/instance:Instance": _gcp_instance,
    "pulumi-python:dynamic/lab:Host": _lab_host,
    "pulumi-python:dynamic/lab:Volume": _lab_volume,
}
_TEMPLATES: dict[str, Callable[[Inputs], Iterator[CostItem]]] = {
    "aws:ec2/launchTemplate:LaunchTemplate": _aws_template,
    "gcp:compute/instanceTemplate:InstanceTemplate": _gcp_template,
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": _gcp_template,
}


def _aws_group(group: PricedResource, everything: tuple[PricedResource, ...]) -> Iterator[CostItem]:
    least, most = _number(group.inputs.get("minSize")), _number(group.inputs.get("maxSize"))
    return (item.times(least, most) for item in _of_template(group, everything))


def _gcp_group(group: PricedResource, everything: tuple[PricedResource, ...]) -> Iterator[CostItem]:
    size = _number(group.inputs.get("targetSize"))
    return (item.times(size, size) for item in _of_template(group, everything))


def _azure_group(group: PricedResource, _: tuple[PricedResource, ...]) -> Iterator[CostItem]:
    size = _number(_at(group.inputs, "sku", "capacity"))
    yield _machine(_at(group.inputs, "sku", "name")).times(size, size)
    disks = _azure_storage(_at(group.inputs, "virtualMachineProfile", "storageProfile"))
    yield from (disk.times(size, size) for disk in disks)


_GROUPS: dict[str, Callable[[PricedResource, tuple[PricedResource, ...]], Iterator[CostItem]]] = {
    "aws:autoscaling/group:Group": _aws_group,
    "azure-native:compute:VirtualMachineScaleSet": _azure_group,
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": _gcp_group,
}


def _of_template(group: PricedResource, everything: tuple[PricedResource, ...]) -> tuple[CostItem, ...]:
    """Return the items of one machine of a group.

    Before the template exists, only names in the program connect it to its group: it has the group's name, or it is
    the only template in the component.
    """
    siblings = [resource for resource in everything if resource.type in _TEMPLATES and resource.parent == group.parent]
    named = [resource for resource in siblings if resource.name == group.name]
    templates = named or (siblings if len(siblings) == 1 else [])
    return tuple(_TEMPLATES[templates[0].type](templates[0].inputs)) if templates else (_machine(None),)
