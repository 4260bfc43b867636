"""Every resource names its cluster, so that bills, audits and people at the console can attribute it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster.spec import Cluster
from cluster.tags import of_cluster
from stacks.policies.model import Resource, Rule, Violation
from stacks.policies.values import at, first, is_hidden, of_types

TAGGED: frozenset[str] = frozenset(
    {
        *("aws:ebs/volume:Volume", "aws:efs/fileSystem:FileSystem", "aws:ec2/customerGateway:CustomerGateway"),
        *("aws:ec2/defaultRouteTable:DefaultRouteTable", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"),
        *("aws:ec2/eip:Eip", "aws:ec2/flowLog:FlowLog"),
        *("aws:ec2/instance:Instance", "aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway"),
        *(
            "aws:ec2/launchTemplate:LaunchTemplate",
            "aws:ec2/networkInterface:NetworkInterface",
            "aws:ec2/subnet:Subnet",
        ),
        *("aws:ec2/placementGroup:PlacementGroup", "aws:ec2/routeTable:RouteTable", "aws:ec2/vpc:Vpc"),
        *("aws:ec2/securityGroup:SecurityGroup", "aws:ec2/vpcEndpoint:VpcEndpoint", "aws:ec2/vpnGateway:VpnGateway"),
        *("aws:ec2/vpnConnection:VpnConnection", "aws:iam/instanceProfile:InstanceProfile", "aws:iam/role:Role"),
        *("aws:kms/key:Key", "aws:lb/listener:Listener", "aws:lb/loadBalancer:LoadBalancer", "aws:s3/bucket:Bucket"),
        *("aws:lb/targetGroup:TargetGroup", "aws:route53/zone:Zone", "aws:s3/bucketObjectv2:BucketObjectv2"),
        *("aws:secretsmanager/secret:Secret", "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"),
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        *("azure-native:compute:CapacityReservationGroup", "azure-native:compute:Disk"),
        *("azure-native:compute:DiskEncryptionSet", "azure-native:compute:ProximityPlacementGroup"),
        *("azure-native:compute:VirtualMachine", "azure-native:compute:VirtualMachineScaleSet"),
        *("azure-native:keyvault:Key", "azure-native:keyvault:Secret", "azure-native:keyvault:Vault"),
        *("azure-native:managedidentity:UserAssignedIdentity", "azure-native:network:FlowLog"),
        *("azure-native:network:LoadBalancer", "azure-native:network:LocalNetworkGateway"),
        *("azure-native:network:NatGateway", "azure-native:network:NetworkInterface"),
        *("azure-native:network:NetworkSecurityGroup", "azure-native:network:PrivateEndpoint"),
        *("azure-native:network:PublicIPAddress", "azure-native:network:RouteTable"),
        *("azure-native:network:VirtualNetwork", "azure-native:network:VirtualNetworkGateway"),
        *("azure-native:network:VirtualNetworkGatewayConnection", "azure-native:privatedns:PrivateZone"),
        *("azure-native:privatedns:VirtualNetworkLink", "azure-native:resources:ResourceGroup"),
        "azure-native:storage:StorageAccount",
        *("gcp:compute/address:Address", "gcp:compute/disk:Disk", "gcp:compute/forwardingRule:ForwardingRule"),
        *("gcp:compute/externalVpnGateway:ExternalVpnGateway", "gcp:compute/globalAddress:GlobalAddress"),
        *("gcp:compute/globalForwardingRule:GlobalForwardingRule", "gcp:compute/haVpnGateway:HaVpnGateway"),
        *("gcp:compute/instance:Instance", "gcp:compute/instanceTemplate:InstanceTemplate"),
        *("gcp:compute/regionInstanceTemplate:RegionInstanceTemplate", "gcp:compute/vPNTunnel:VPNTunnel"),
        *("gcp:dns/managedZone:ManagedZone", "gcp:kms/cryptoKey:CryptoKey", "gcp:secretmanager/secret:Secret"),
        "gcp:storage/bucket:Bucket",
    }
)
"""Types that take tags or labels."""

_MARKS = ("tags", "tagsAll", "labels", "effectiveLabels", "pulumiLabels")
_GROUP = "aws:autoscaling/group:Group"
_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_TEMPLATES_OF_GOOGLE = (
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)
_STARTED = ("instance", "volume")
_DEFAULTS = {"pulumi:providers:aws": "defaultTags", "pulumi:providers:gcp": "defaultLabels"}


def _tagged(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    defaults = _of_providers(resources)
    for resource in of_types(resources, TAGGED):
        marks = [defaults.get(resource.type.partition(":")[0], {})]
        marks += [
            value for source in (resource.inputs, resource.outputs) for path in _MARKS for value in at(source, path)
        ]
        if lacking := _lacking(cluster, marks):
            yield _broken(resource, f"has no {lacking}", "add the tags or labels of the stack's tags.py")
    for group in of_types(resources, (_GROUP,)):
        if lacking := _lacking(cluster, [_pair(mark) for mark in at(group.inputs, "tags[]")]):
            yield _broken(group, f"has no {lacking}", "write them in its own tags")
    yield from _started_by_groups(cluster, resources)


def _started_by_groups(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    """Check what groups start: machines and disks."""
    for template in of_types(resources, (_TEMPLATE,)):
        for kind in _STARTED:
            if lacking := _lacking(cluster, list(_specified(template, kind))):
                way = f"add tagSpecifications for {kind}"
                yield _broken(template, f"starts every {kind} without {lacking}", way)
    for template in of_types(resources, _TEMPLATES_OF_GOOGLE):
        for disk in at(template.inputs, "disks[]"):
            if lacking := _lacking(cluster, list(at(disk, "labels"))):
                yield _broken(template, f"creates a disk without {lacking}", "add labels to its disks")


def _of_providers(resources: Sequence[Resource]) -> dict[str, Any]:
    """Return package -> the tags or labels that its provider adds to everything; needed before there are outputs.

    A provider's settings are JSON texts.
    """
    by_package: dict[str, Any] = {}
    for provider in of_types(resources, _DEFAULTS):
        settings = first(provider.inputs, _DEFAULTS[provider.type])
        if isinstance(settings, str) and not is_hidden(settings):
            settings = json.loads(settings)
        by_package[provider.type.rpartition(":")[2]] = first(settings, "tags") or settings
    return by_package


def _lacking(cluster: Cluster, sources: Sequence[Any]) -> str:
    if any(is_hidden(value) for value in sources):
        return ""
    pairs = [pair for value in sources if isinstance(value, Mapping) for pair in value.items()]
    missing = [
        f"{key}: {value}"
        for key, value in of_cluster(cluster.name).items()
        if not any(mark == key and (is_hidden(tag) or tag == value) for mark, tag in pairs)
    ]
    return " and ".join(missing)


def _pair(mark: Any) -> Any:
    return {mark.get("key"): mark.get("value")} if isinstance(mark, Mapping) else mark


def _specified(template: Resource, kind: str) -> Iterator[Any]:
    for specification in at(template.inputs, "tagSpecifications[]"):
        kind_of_resource = first(specification, "resourceType")
        if kind_of_resource == kind or is_hidden(kind_of_resource):
            yield from at(specification, "tags")


def _broken(resource: Resource, what: str, way_out: str) -> Violation:
    return Violation("tagged", resource, f"{resource.type} {resource.name} {what}", way_out)


RULES = (
    Rule(
        "tagged",
        "Every resource that takes tags or labels has menagerie: true and the cluster's name, including what groups start.",
        _tagged,
        "The AWS provider adds its default tags neither to an Auto Scaling group nor to what a launch template "
        "starts; the Google Cloud provider adds its default labels to top-level fields only, not to a template's disks.",
    ),
)
