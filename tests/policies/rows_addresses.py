"""Addresses, load balancers and firewalls, private and public."""

from __future__ import annotations

from typing import Any

from stacks.policies.model import Resource
from tests.policies.support import Case, resource

_NIC = {"ipConfigurations": [{"subnet": {"id": "s"}}]}


def _rule_of_azure(**more: Any) -> Resource:
    rule = {"access": "Allow", "direction": "Inbound", "sourceAddressPrefix": "10.0.0.0/8", **more}
    return resource("azure-native:network:NetworkSecurityGroup", {"securityRules": [rule]})


ADDRESSES = (
    Case(
        "addresses-private",
        (resource("aws:ec2/instance:Instance", {"associatePublicIpAddress": False}),),
        ({"associatePublicIpAddress": True},),
    ),
    Case(
        "addresses-private",
        (
            resource(
                "aws:ec2/launchTemplate:LaunchTemplate", {"networkInterfaces": [{"associatePublicIpAddress": "false"}]}
            ),
        ),
        ({"networkInterfaces[].associatePublicIpAddress": "true"},),
    ),
    Case("addresses-private", (resource("aws:ec2/subnet:Subnet"),), ({"mapPublicIpOnLaunch": True},)),
    Case(
        "addresses-private",
        (
            resource("aws:ec2/eip:Eip", outputs={"allocationId": "eipalloc-1"}),
            resource("aws:ec2/natGateway:NatGateway", {"allocationId": "eipalloc-1"}),
        ),
        ({"allocationId": "eipalloc-2"}, {"allocationId": None}),
    ),
    Case(
        "addresses-private",
        (resource("azure-native:network:NetworkInterface", _NIC),),
        ({"ipConfigurations[].publicIPAddress": {"id": "p"}},),
    ),
    Case(
        "addresses-private",
        (
            resource(
                "azure-native:compute:VirtualMachineScaleSet",
                {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": [_NIC]}}},
            ),
        ),
        (
            {
                "virtualMachineProfile.networkProfile.networkInterfaceConfigurations[].ipConfigurations[]."
                "publicIPAddressConfiguration": {"name": "p"}
            },
        ),
    ),
    Case(
        "addresses-private",
        (resource("azure-native:network:LoadBalancer", {"frontendIPConfigurations": [{"subnet": {"id": "s"}}]}),),
        ({"frontendIPConfigurations[].publicIPAddress": {"id": "p"}},),
    ),
    *(
        Case(
            "addresses-private",
            (resource("azure-native:network:PublicIPAddress", outputs={"id": "/rg/p"}), resource(type_, inputs)),
            (wrong,),
        )
        for type_, inputs, wrong in (
            ("azure-native:network:NatGateway", {"publicIpAddresses": [{"id": "/RG/p"}]}, {"publicIpAddresses": []}),
            (
                "azure-native:network:VirtualNetworkGateway",
                {"ipConfigurations": [{"publicIPAddress": {"id": "/rg/p"}}]},
                {"ipConfigurations[].publicIPAddress.id": "/rg/q"},
            ),
        )
    ),
    *(
        Case(
            "addresses-private",
            (resource(type_, {"networkInterfaces": [{"subnetwork": "s"}]}),),
            (
                {"networkInterfaces[].accessConfigs": [{}]},
                {"networkInterfaces[].ipv6AccessConfigs": [{"networkTier": "PREMIUM"}]},
            ),
        )
        for type_ in (
            "gcp:compute/instance:Instance",
            "gcp:compute/instanceTemplate:InstanceTemplate",
            "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
        )
    ),
    Case(
        "addresses-private",
        (resource("gcp:compute/address:Address", {"addressType": "INTERNAL"}),),
        ({"addressType": "EXTERNAL"}, {"addressType": None}),
    ),
    Case(
        "addresses-private",
        (
            resource("gcp:compute/address:Address", outputs={"selfLink": "https://x/addresses/a"}),
            resource("gcp:compute/routerNat:RouterNat", {"natIps": ["https://x/addresses/a"]}),
        ),
        ({"natIps": []},),
    ),
    Case(
        "balancers-private",
        (resource("aws:lb/loadBalancer:LoadBalancer", {"internal": True}),),
        ({"internal": False}, {"internal": None}),
    ),
    Case(
        "balancers-private",
        (resource("gcp:compute/forwardingRule:ForwardingRule", {"loadBalancingScheme": "INTERNAL"}),),
        ({"loadBalancingScheme": "EXTERNAL"}, {"loadBalancingScheme": None}, {"loadBalancingScheme": ""}),
    ),
    Case(
        "balancers-private",
        (
            resource(
                "gcp:compute/globalForwardingRule:GlobalForwardingRule",
                {"loadBalancingScheme": "", "target": "all-apis"},
            ),
        ),
        ({"target": "projects/p/global/targetHttpProxies/x"},),
    ),
    Case(
        "ingress-closed",
        (resource("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", {"cidrIpv4": "10.0.0.0/8"}),),
        ({"cidrIpv4": "0.0.0.0/0"}, {"cidrIpv4": "128.0.0.0/1"}, {"cidrIpv6": "::/0"}),
    ),
    Case(
        "ingress-closed",
        (
            resource(
                "aws:ec2/securityGroup:SecurityGroup",
                {"ingress": [{"cidrBlocks": ["10.0.0.0/16"]}], "egress": [{"cidrBlocks": ["0.0.0.0/0"]}]},
            ),
        ),
        ({"ingress[].cidrBlocks": ["10.0.0.0/16", "0.0.0.0/0"]}, {"ingress[].ipv6CidrBlocks": ["::/0"]}),
    ),
    Case(
        "ingress-closed",
        (resource("aws:ec2/securityGroupRule:SecurityGroupRule", {"type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),),
        ({"type": "ingress"},),
    ),
    Case(
        "ingress-closed",
        (_rule_of_azure(),),
        (
            {"securityRules[].sourceAddressPrefix": "*"},
            {"securityRules[].sourceAddressPrefix": "Internet"},
            {"securityRules[].sourceAddressPrefix": "0.0.0.0/0"},
            {"securityRules[].sourceAddressPrefixes": ["10.1.0.0/16", "0.0.0.0/0"]},
        ),
    ),
    Case(
        "ingress-closed",
        (_rule_of_azure(access="Deny", sourceAddressPrefix="*"),),
        ({"securityRules[].access": "Allow"},),
    ),
    Case(
        "ingress-closed",
        (_rule_of_azure(direction="Outbound", sourceAddressPrefix="*"),),
        ({"securityRules[].direction": "Inbound"},),
    ),
    Case(
        "ingress-closed",
        (
            resource(
                "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules",
                {"rules": [{"action": "allow", "direction": "INGRESS", "match": {"srcIpRanges": ["35.191.0.0/16"]}}]},
            ),
        ),
        (
            {"rules[].match.srcIpRanges": ["35.191.0.0/16", "0.0.0.0/0"]},
            {"rules": [{"action": "goto_next", "match": {"srcIpRanges": ["0.0.0.0/0"]}}]},
        ),
    ),
    Case(
        "ingress-closed",
        (
            resource(
                "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules",
                {"rules": [{"action": "deny", "direction": "INGRESS", "match": {"srcIpRanges": ["0.0.0.0/0"]}}]},
            ),
        ),
        ({"rules[].action": "allow"},),
    ),
    Case(
        "ingress-closed",
        (
            resource(
                "gcp:compute/firewall:Firewall", {"allows": [{"protocol": "tcp"}], "sourceRanges": ["35.191.0.0/16"]}
            ),
        ),
        ({"sourceRanges": ["0.0.0.0/0"]}, {"sourceRanges": None}),
    ),
    Case(
        "ingress-closed",
        (resource("gcp:compute/firewall:Firewall", {"denies": [{"protocol": "all"}], "sourceRanges": ["0.0.0.0/0"]}),),
        ({"allows": [{"protocol": "tcp"}]},),
    ),
    Case(
        "ingress-closed",
        (resource("gcp:compute/firewall:Firewall", {"direction": "EGRESS", "allows": [{"protocol": "tcp"}]}),),
        ({"direction": "INGRESS"},),
    ),
)
