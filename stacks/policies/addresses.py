"""Only NAT and VPN gateways have public addresses, and no firewall admits traffic from everywhere.

A spec may request one more public address: for the load balancer of ``control_plane.public``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from cluster.spec import Cluster
from stacks.policies.model import Resource, Rule, Severity, Violation
from stacks.policies.values import at, first, is_hidden, is_on, is_one_of, names_of, of_types, text

_INTERFACES_OF_GOOGLE = ("networkInterfaces[].accessConfigs[]", "networkInterfaces[].ipv6AccessConfigs[]")
_OF_MACHINE = "networkProfile.networkInterfaceConfigurations[].ipConfigurations[].publicIPAddressConfiguration"

GIVEN: Mapping[str, tuple[str, ...]] = {
    "aws:ec2/instance:Instance": ("associatePublicIpAddress",),
    "aws:ec2/launchTemplate:LaunchTemplate": ("networkInterfaces[].associatePublicIpAddress",),
    "aws:ec2/subnet:Subnet": ("mapPublicIpOnLaunch",),
    "azure-native:compute:VirtualMachine": (_OF_MACHINE,),
    "azure-native:compute:VirtualMachineScaleSet": (f"virtualMachineProfile.{_OF_MACHINE}",),
    "azure-native:network:LoadBalancer": ("frontendIPConfigurations[].publicIPAddress",),
    "azure-native:network:NetworkInterface": ("ipConfigurations[].publicIPAddress",),
    "gcp:compute/instance:Instance": _INTERFACES_OF_GOOGLE,
    "gcp:compute/instanceTemplate:InstanceTemplate": _INTERFACES_OF_GOOGLE,
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": _INTERFACES_OF_GOOGLE,
}
"""Type -> properties that give it a public address. Any value except False does: for an empty accessConfig Google chooses
an address."""

RESERVED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "aws:ec2/eip:Eip": (("aws:ec2/natGateway:NatGateway", "allocationId"),),
    "azure-native:network:PublicIPAddress": (
        ("azure-native:network:NatGateway", "publicIpAddresses[].id"),
        ("azure-native:network:VirtualNetworkGateway", "ipConfigurations[].publicIPAddress.id"),
    ),
    "azure-native:network:PublicIPPrefix": (("azure-native:network:NatGateway", "publicIpPrefixes[].id"),),
    "gcp:compute/address:Address": (("gcp:compute/routerNat:RouterNat", "natIps[]"),),
    "gcp:compute/globalAddress:GlobalAddress": (),
}
"""Type of an address -> the gateways that may use it, and the property by which they refer to it."""

_BALANCER_OF_AZURE = "azure-native:network:LoadBalancer"

OF_BALANCERS: Mapping[str, tuple[str, str]] = {
    "aws:ec2/eip:Eip": ("aws:lb/loadBalancer:LoadBalancer", "subnetMappings[].allocationId"),
    "azure-native:network:PublicIPAddress": (_BALANCER_OF_AZURE, "frontendIPConfigurations[].publicIPAddress.id"),
    "gcp:compute/address:Address": ("gcp:compute/forwardingRule:ForwardingRule", "ipAddress"),
}
"""Type of an address -> the load balancer that may use it if the spec requests a public endpoint."""

_BALANCERS_OF_AWS = (
    "aws:alb/loadBalancer:LoadBalancer",
    "aws:elb/loadBalancer:LoadBalancer",
    "aws:lb/loadBalancer:LoadBalancer",
)
_RULES_OF_GOOGLE = (
    "gcp:compute/forwardingRule:ForwardingRule",
    "gcp:compute/globalForwardingRule:GlobalForwardingRule",
)
_SERVICES = ("all-apis", "vpc-sc")
""""About accessing Google APIs through endpoints": targets inside the network; their forwarding rules have no scheme."""

WIDEST = 8
"""Prefix length of the widest private range, 10.0.0.0/8 (RFC 1918); 0.0.0.0/1 is half the internet."""
_EVERYWHERE = frozenset({"*", "any", "internet"})
"""Azure's words for everywhere."""


def _broken(rule: str, resource: Resource, what: str, way_out: str, severity: Severity = "error") -> Violation:
    return Violation(rule, resource, f"{resource.type} {resource.name} {what}", way_out, severity)


def _addresses(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    has_public_endpoint = cluster.spec.control_plane.public is not None
    for resource in of_types(resources, GIVEN):
        if has_public_endpoint and resource.type == _BALANCER_OF_AZURE:
            continue
        for path in GIVEN[resource.type]:
            if any(
                value is not False and value != "false" and not is_hidden(value) for value in at(resource.inputs, path)
            ):
                way = f"omit {path.replace('[]', '')}; hosts reach the internet through NAT"
                yield _broken("addresses-private", resource, f"has a public address ({path})", way)
    for resource in of_types(resources, RESERVED):
        if _is_public(resource) and not _is_allowed(resource, resources, has_public_endpoint):
            way = "use a private address; only NAT and VPN gateways may have public ones"
            yield _broken(
                "addresses-private",
                resource,
                "is a public address that belongs to neither a NAT nor a VPN gateway",
                way,
            )


def _is_public(address: Resource) -> bool:
    """Whether an address is public. Google's are, unless their type is INTERNAL ("Address", Compute Engine API)."""
    kind = first(address.inputs, "addressType")
    return not (address.type.startswith("gcp:") and (kind == "INTERNAL" or is_hidden(kind)))


def _is_allowed(address: Resource, resources: Sequence[Resource], has_public_endpoint: bool) -> bool:
    """Whether a resource that may be public uses the address. has_public_endpoint: whether the spec requests one."""
    names = names_of(address)
    more = (OF_BALANCERS[address.type],) if has_public_endpoint and address.type in OF_BALANCERS else ()
    return any(
        is_one_of(value, names)
        for type_, path in (*RESERVED[address.type], *more)
        for gateway in of_types(resources, (type_,))
        for value in at(gateway.inputs, path)
    )


def _balancers(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    if cluster.spec.control_plane.public:
        return
    for resource in of_types(resources, _BALANCERS_OF_AWS):
        inside = first(resource.inputs, "internal")
        if not is_on(inside) and not is_hidden(inside):
            yield _broken("balancers-private", resource, "is open to the internet", "set internal to true")
    for resource in of_types(resources, _RULES_OF_GOOGLE):
        scheme, target = first(resource.inputs, "loadBalancingScheme"), text(resource.inputs, "target")
        # "ForwardingRule", Compute Engine API: EXTERNAL is the default.
        attached = scheme == "" and (target in _SERVICES or "/serviceAttachments/" in target or is_hidden(target))
        if not (is_hidden(scheme) or str(scheme).startswith("INTERNAL") or attached):
            way = "set loadBalancingScheme to INTERNAL"
            yield _broken("balancers-private", resource, f"is open to the internet ({scheme or 'EXTERNAL'})", way)


def _ingress(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    plane = cluster.spec.control_plane
    requested = {str(range_) for range_ in (*plane.operators, *(plane.public.operators if plane.public else ()))}
    for resource in resources:
        wide = dict.fromkeys(source for source in _sources(resource) if _is_everywhere(source))
        for source in wide:
            way = "name the allowed ranges: generate the rule from the table of flows (components/flows/table.py)"
            severity: Severity = "warning" if source in requested else "error"
            yield _broken("ingress-closed", resource, f"admits {source}", way, severity)


def _is_everywhere(source: Any) -> bool:
    if not isinstance(source, str) or is_hidden(source):
        return False
    if source.lower() in _EVERYWHERE:
        return True
    try:
        network: IPv4Network | IPv6Network = ip_network(source, strict=False)
    except ValueError:
        return False  # A service tag or a group.
    return network.prefixlen < WIDEST


def _sources(resource: Resource) -> Iterator[Any]:
    """Yield the sources that a firewall admits."""
    inputs = resource.inputs
    match resource.type:
        case "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule":
            yield from _all(inputs, "cidrIpv4", "cidrIpv6")
        case "aws:ec2/securityGroup:SecurityGroup" | "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup":
            yield from _all(inputs, "ingress[].cidrBlocks[]", "ingress[].ipv6CidrBlocks[]")
        case "aws:ec2/securityGroupRule:SecurityGroupRule" if text(inputs, "type") == "ingress":
            yield from _all(inputs, "cidrBlocks[]", "ipv6CidrBlocks[]")
        case "gcp:compute/firewall:Firewall" if _admits(inputs):
            sources = _all(inputs, "sourceRanges[]", "sourceTags[]", "sourceServiceAccounts[]")
            # "VPC firewall rules": if a rule names no source, the source is 0.0.0.0/0.
            yield from list(sources) or ["0.0.0.0/0"]
        case "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules":
            yield from _of_a_policy(inputs)
        case "azure-native:network:NetworkSecurityGroup":
            for rule in at(inputs, "securityRules[]"):
                yield from _of_azure(rule)
        case "azure-native:network:SecurityRule":
            yield from _of_azure(inputs)


def _of_a_policy(inputs: Mapping[str, Any]) -> Iterator[Any]:
    for rule in at(inputs, "rules[]"):
        # "FirewallPolicyRule", Compute Engine API: without a direction, a rule applies to ingress.
        action, direction = text(rule, "action"), text(rule, "direction") or "INGRESS"
        if not is_hidden(action) and action != "deny" and direction == "INGRESS":
            yield from _all(rule, "match.srcIpRanges[]")


def _admits(inputs: Mapping[str, Any]) -> bool:
    """Whether a rule of Google allows ingress; without a direction a rule applies to ingress."""
    allows, direction = inputs.get("allows"), inputs.get("direction", "INGRESS")
    return bool(allows) and not is_hidden(allows) and direction == "INGRESS"


def _of_azure(rule: Any) -> Iterator[Any]:
    if text(rule, "access").lower() == "allow" and text(rule, "direction").lower() == "inbound":
        yield from _all(rule, "sourceAddressPrefix", "sourceAddressPrefixes[]")


def _all(value: Any, *paths: str) -> Iterable[Any]:
    return [item for path in paths for item in at(value, path)]


RULES = (
    Rule(
        "addresses-private",
        "No machine, interface or load balancer has a public address; only NAT and VPN gateways do, and the load balancer of "
        "control_plane.public.",
        _addresses,
    ),
    Rule(
        "balancers-private",
        "Load balancers are inside the network, except the one of control_plane.public.",
        _balancers,
    ),
    Rule(
        "ingress-closed",
        "No firewall admits 0.0.0.0/0 or a range wider than a /8; only a warning if the spec requests it: "
        "control_plane.operators, control_plane.public.",
        _ingress,
        "10.0.0.0/8 is the widest private range (RFC 1918).",
    ),
)
