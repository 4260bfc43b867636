"""Counts what costs money in a stack: machines, disks, public addresses, gateways. Prices are in `controllers.prices`.

A plan has no traffic, requests or bucket contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cluster.costs import CostItem, CostKind

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class PricedResource:
    """The properties of a resource that matter here."""

    type: str
    name: str
    parent: str
    inputs: Inputs


def items(resources: Iterable[PricedResource], pools: Mapping[str, int] | None = None) -> tuple[CostItem, ...]:
    """Return the totals of all resources, by kind and type.

    pools: pool -> the most machines that it may have, for clouds whose groups have no maximum.
    """
    everything = tuple(resources)
    counted = [item for resource in everything for item in _items(resource, everything)]
    counted += _growth(everything, pools or {})
    sums: dict[tuple[CostKind, str], CostItem] = {}
    for item in map(partial(_for_each_host, hosts=_hosts(counted)), counted):
        key = (item.kind, item.what)
        have = sums.get(key, replace(item, least=0, most=0))
        sums[key] = replace(have, least=have.least + item.least, most=have.most + item.most)
    order = list(CostKind)
    return tuple(sorted(sums.values(), key=lambda item: (order.index(item.kind), item.what)))


def _hosts(counted: Iterable[CostItem]) -> tuple[int, int]:
    machines = [item for item in counted if item.kind is CostKind.MACHINE]
    return sum(item.least for item in machines), sum(item.most for item in machines)


def _for_each_host(item: CostItem, hosts: tuple[int, int]) -> CostItem:
    """Google bills its NAT by the number of hosts behind it ("Cloud NAT pricing")."""
    return item.times(*hosts) if (item.kind, item.type) == (CostKind.NAT, _HOST_BEHIND_NAT) else item


def _items(resource: PricedResource, everything: tuple[PricedResource, ...]) -> Iterator[CostItem]:
    if resource.type in _SIMPLE:
        yield CostItem(_SIMPLE[resource.type])
    elif resource.type in _DEPENDENT:
        yield from _DEPENDENT[resource.type](resource, everything)
    elif resource.type in _ALONE:
        yield from _ALONE[resource.type](resource.inputs)


# One item per resource, whatever its inputs.
_SIMPLE = {
    "aws:ec2/eip:Eip": CostKind.PUBLIC_ADDRESS,
    "aws:ec2/vpnConnection:VpnConnection": CostKind.VPN_CONNECTION,
    "aws:ec2/vpnGateway:VpnGateway": CostKind.VPN_GATEWAY,
    "aws:kms/key:Key": CostKind.KEY,
    "aws:lb/loadBalancer:LoadBalancer": CostKind.LOAD_BALANCER,
    "aws:route53/zone:Zone": CostKind.DNS_ZONE,
    "aws:s3/bucket:Bucket": CostKind.BUCKET,
    "aws:secretsmanager/secret:Secret": CostKind.SECRET,
    "azure-native:keyvault:Key": CostKind.KEY,
    "azure-native:keyvault:Secret": CostKind.SECRET,
    "azure-native:network:LoadBalancer": CostKind.LOAD_BALANCER,
    "azure-native:network:NatGateway": CostKind.NAT,
    "azure-native:network:PrivateEndpoint": CostKind.ENDPOINT,
    "azure-native:network:PublicIPAddress": CostKind.PUBLIC_ADDRESS,
    "azure-native:network:VirtualNetworkGatewayConnection": CostKind.VPN_CONNECTION,
    "azure-native:privatedns:PrivateZone": CostKind.DNS_ZONE,
    "azure-native:storage:BlobContainer": CostKind.BUCKET,
    "gcp:compute/forwardingRule:ForwardingRule": CostKind.LOAD_BALANCER,
    "gcp:compute/haVpnGateway:HaVpnGateway": CostKind.VPN_GATEWAY,
    "gcp:compute/vPNTunnel:VPNTunnel": CostKind.VPN_CONNECTION,
    "gcp:dns/managedZone:ManagedZone": CostKind.DNS_ZONE,
    "gcp:kms/cryptoKey:CryptoKey": CostKind.KEY,
    "gcp:secretmanager/secretVersion:SecretVersion": CostKind.SECRET,
    "gcp:storage/bucket:Bucket": CostKind.BUCKET,
    "pulumi-python:dynamic/lab:LoadBalancer": CostKind.LOAD_BALANCER,
}

_GIB = 2**30
_HOST_BEHIND_NAT = "host"
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


def _machine(kind: object, *, spot: bool = False) -> CostItem:
    type_ = _word(kind)
    what = type_ or "of a type not known yet"
    return CostItem(CostKind.MACHINE, f"{what} as spot" if spot else what, type=type_, spot=spot)


def _disk(kind: object, gib: object, iops: object = None) -> CostItem:
    type_, size, rate = _word(kind), _number(gib), _number(iops)
    facts = [type_ or "of the default kind", f"{size} GiB" if size else "as large as the image"]
    what = " ".join(facts) + (f", {rate} IOPS" if rate else "")
    return CostItem(CostKind.DISK, what, gib=size, type=type_, iops=rate)


def _aws_instance(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(inputs.get("instanceType"))
    root = inputs.get("rootBlockDevice")
    yield _disk(_at(root, "volumeType"), _at(root, "volumeSize"), _at(root, "iops"))
    for disk in _list(inputs, "ebsBlockDevices"):
        yield _disk(_at(disk, "volumeType"), _at(disk, "volumeSize"), _at(disk, "iops"))


def _aws_template(inputs: Inputs) -> Iterator[CostItem]:
    spot = _at(inputs, "instanceMarketOptions", "marketType") == "spot"
    yield _machine(inputs.get("instanceType"), spot=spot)
    for mapping in _list(inputs, "blockDeviceMappings"):
        ebs = _at(mapping, "ebs")
        yield _disk(_at(ebs, "volumeType"), _at(ebs, "volumeSize"), _at(ebs, "iops"))


def _aws_volume(inputs: Inputs) -> Iterator[CostItem]:
    yield _disk(inputs.get("type"), inputs.get("size"), inputs.get("iops"))


def _aws_endpoint(inputs: Inputs) -> Iterator[CostItem]:
    """Endpoints for S3 and DynamoDB are routes and free (AWS PrivateLink pricing); others are billed per subnet."""
    if inputs.get("vpcEndpointType") == "Interface":
        subnets = len(_list(inputs, "subnetIds")) or 1
        yield CostItem(CostKind.ENDPOINT, least=subnets, most=subnets)


def _gcp_template(inputs: Inputs) -> Iterator[CostItem]:
    yield _machine(inputs.get("machineType"), spot=_at(inputs, "scheduling", "provisioningModel") == "SPOT")
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


def _gcp_nat(_: Inputs) -> Iterator[CostItem]:
    yield CostItem(CostKind.NAT, "host behind Cloud NAT", type=_HOST_BEHIND_NAT)


def _gcp_global_rule(inputs: Inputs) -> Iterator[CostItem]:
    """A rule for Google's APIs is an endpoint of Private Service Connect; other global rules are of load balancers."""
    yield CostItem(CostKind.ENDPOINT if inputs.get("target") == "all-apis" else CostKind.LOAD_BALANCER)


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


def _azure_gateway(inputs: Inputs) -> Iterator[CostItem]:
    size = _word(_at(inputs, "sku", "name"))
    yield CostItem(CostKind.VPN_GATEWAY, size, type=size)


def _lab_host(inputs: Inputs) -> Iterator[CostItem]:
    yield CostItem(CostKind.MACHINE, f"host of {_number(inputs.get('memory_bytes')) / _GIB:g} GiB")


def _lab_volume(_: Inputs) -> Iterator[CostItem]:
    yield CostItem(CostKind.DISK, "folder")


_ALONE: dict[str, Callable[[Inputs], Iterator[CostItem]]] = {
    "aws:ebs/volume:Volume": _aws_volume,
    "aws:ec2/instance:Instance": _aws_instance,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _aws_endpoint,
    "azure-native:compute:Disk": _azure_disk,
    "azure-native:compute:VirtualMachine": _azure_machine,
    "azure-native:network:VirtualNetworkGateway": _azure_gateway,
    "gcp:compute/address:Address": _gcp_address,
    "gcp:compute/disk:Disk": _gcp_disk,
    "gcp:compute/globalAddress:GlobalAddress": _gcp_address,
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": _gcp_global_rule,
    "gcp:compute/instance:Instance": _gcp_instance,
    "gcp:compute/routerNat:RouterNat": _gcp_nat,
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
    """A pool's maximum is in the tags by which the autoscaler finds it; a group without them keeps its size."""
    size = _number(_at(group.inputs, "sku", "capacity"))
    most = max(size, _count(_at(group.inputs, "tags", "max")))
    profile = group.inputs.get("virtualMachineProfile")
    machine = _machine(_at(group.inputs, "sku", "name"), spot=_at(profile, "priority") == "Spot")
    disks = _azure_storage(_at(profile, "storageProfile"))
    yield from (item.times(size, most) for item in (machine, *disks))


def _count(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else 0


def _aws_nat(gateway: PricedResource, everything: tuple[PricedResource, ...]) -> Iterator[CostItem]:
    """A regional gateway is in every zone with hosts and is billed for each ("Regional NAT gateways")."""
    if gateway.inputs.get("availabilityMode") != "regional":
        yield CostItem(CostKind.NAT)
        return
    subnets = [resource.inputs for resource in everything if resource.type == "aws:ec2/subnet:Subnet"]
    zones = {subnet.get("availabilityZoneId") or subnet.get("availabilityZone") for subnet in subnets}
    yield CostItem(CostKind.NAT, "zone of the regional gateway").times(len(zones) or 1, len(zones) or 1)


_GROUPS: dict[str, Callable[[PricedResource, tuple[PricedResource, ...]], Iterator[CostItem]]] = {
    "aws:autoscaling/group:Group": _aws_group,
    "azure-native:compute:VirtualMachineScaleSet": _azure_group,
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _gcp_group,
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": _gcp_group,
}
_DEPENDENT = {**_GROUPS, "aws:ec2/natGateway:NatGateway": _aws_nat}
"""What depends on other resources."""


def _of_template(group: PricedResource, everything: tuple[PricedResource, ...]) -> tuple[CostItem, ...]:
    """Return the items of one machine of a group."""
    template = _template(group, everything)
    return tuple(_TEMPLATES[template.type](template.inputs)) if template else (_machine(None),)


def _template(group: PricedResource, everything: tuple[PricedResource, ...]) -> PricedResource | None:
    """Return a group's template.

    Before the template exists, only names in the program connect it to its group: it has the group's name, perhaps
    without the zone at its end, or it is the only template in the component.
    """
    siblings = [resource for resource in everything if resource.type in _TEMPLATES and resource.parent == group.parent]
    named = [resource for resource in siblings if f"{group.name}-".startswith(f"{resource.name}-")]
    if named:
        return max(named, key=lambda resource: len(resource.name))
    return siblings[0] if len(siblings) == 1 else None


def _growth(everything: tuple[PricedResource, ...], pools: Mapping[str, int]) -> Iterator[CostItem]:
    """Yield what Google's pools may grow by: a pool has a group in each zone, and only the spec has its maximum."""
    groups = [resource for resource in everything if resource.type in _GROUPS]
    for template in everything:
        if template.type not in _TEMPLATES or not template.type.startswith("gcp:"):
            continue
        own = [group for group in groups if _template(group, everything) is template]
        size = sum(_number(group.inputs.get("targetSize")) for group in own)
        more = pools.get(_word(_at(template.inputs, "labels", "pool")), size) - size
        yield from (item.times(0, max(0, more)) for item in _gcp_template(template.inputs))
