"""Resource types and durations in plain words."""

from __future__ import annotations

import re

# Last part of the type -> name for people.
_WORDS = {
    "Address": "address",
    "Authority": "certificate authority",
    "DefaultSecurityGroup": "default security group",
    "Eip": "public address",
    "GlobalAddress": "address",
    "HaVpnGateway": "VPN gateway",
    "Instance": "machine",
    "NetworkInterface": "network interface",
    "NetworkSecurityGroup": "security group",
    "PublicIPAddress": "public address",
    "RegionInstanceGroupManager": "group of machines",
    "RegionInstanceTemplate": "template of machines",
    "InstanceTemplate": "template of machines",
    "LaunchTemplate": "template of machines",
    "RouterNat": "NAT gateway",
    "UserAssignedIdentity": "identity",
    "VirtualMachine": "machine",
    "VirtualMachineScaleSet": "group of machines",
    "VirtualNetwork": "network",
    "VirtualNetworkGateway": "VPN gateway",
    "VirtualNetworkGatewayConnection": "VPN connection",
    "Volume": "disk",
}
_BY_TYPE = {"aws:autoscaling/group:Group": "group of machines", "aws:lb/targetGroup:TargetGroup": "target group"}
_SHORT = ("DNS", "HA", "IAM", "IP", "KMS", "NAT", "SSH", "VPC", "VPN")


def plain(type_: str) -> str:
    """Return a type in plain words: ``aws:ec2/natGateway:NatGateway`` -> ``NAT gateway``."""
    last = type_.rpartition(":")[2]
    return _BY_TYPE.get(type_) or _WORDS.get(last) or _split(last)


def component(type_: str) -> str:
    """Return a component's type in plain words. The type ends in our own name."""
    return _split(type_.rpartition(":")[2])


def _split(name: str) -> str:
    """``VpnGatewayRoutePropagation`` -> ``VPN gateway route propagation``."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return " ".join(word.upper() if word.upper() in _SHORT else word.lower() for word in words)


def duration(seconds: float) -> str:
    """Format a duration for people, in a unit with few digits: ``45 s``, ``12 min``, ``3.5 h``, ``4.2 d``."""
    for unit, length, least in (("d", 86_400, 2), ("h", 3_600, 2), ("min", 60, 2)):
        if seconds >= least * length:
            return f"{seconds / length:.{0 if unit == 'min' else 1}f} {unit}"
    return f"{seconds:.0f} s"
