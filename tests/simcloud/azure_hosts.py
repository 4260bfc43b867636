"""The Azure resources that hosts of one cluster need: network, permissions, keys, disks, machines."""

from __future__ import annotations

from typing import Any

from sandbox.simcloud.azure.common import TENANT
from sandbox.simcloud.identifiers import guid
from tests.simcloud.azure_places import (
    AS_HOST,
    DATA_DISK,
    ENCRYPTION,
    GROUP,
    HOST,
    IMAGE,
    INTERFACE,
    KEY_URI,
    NET,
    NODES,
    OS,
    OS_DISK,
    ROLE,
    RULE,
    VAULT,
    own,
)

# Key -> token's module and type, name property, name, and the other inputs.
HOSTS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "group": ("resources:ResourceGroup", "resourceGroupName", "apes", {}),
    "address": (
        "network:PublicIPAddress",
        "publicIpAddressName",
        "nat",
        {"sku": {"name": "Standard"}, "publicIPAllocationMethod": "Static", "zones": ["1"]},
    ),
    "gateway address 1": (
        "network:PublicIPAddress",
        "publicIpAddressName",
        "vpn-1",
        {"sku": {"name": "Standard"}, "publicIPAllocationMethod": "Static", "zones": ["1", "2", "3"]},
    ),
    "gateway address 2": (
        "network:PublicIPAddress",
        "publicIpAddressName",
        "vpn-2",
        {"sku": {"name": "Standard"}, "publicIPAllocationMethod": "Static", "zones": ["1", "2", "3"]},
    ),
    "nat": (
        "network:NatGateway",
        "natGatewayName",
        "nat",
        {"sku": {"name": "Standard"}, "publicIpAddresses": [{"id": f"{NET}/publicIPAddresses/nat"}], "zones": ["1"]},
    ),
    "routes": (
        "network:RouteTable",
        "routeTableName",
        "routes",
        {"routes": [{"name": "site", "addressPrefix": "10.9.0.0/16", "nextHopType": "VirtualNetworkGateway"}]},
    ),
    "rules": ("network:NetworkSecurityGroup", "networkSecurityGroupName", "rules", {"securityRules": [RULE]}),
    "network": (
        "network:VirtualNetwork",
        "virtualNetworkName",
        "network",
        {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
    ),
    "subnet": (
        "network:Subnet",
        "subnetName",
        "nodes",
        {
            "virtualNetworkName": "network",
            "addressPrefix": "10.0.1.0/24",
            "networkSecurityGroup": {"id": f"{NET}/networkSecurityGroups/rules"},
            "natGateway": {"id": f"{NET}/natGateways/nat"},
            "routeTable": {"id": f"{NET}/routeTables/routes"},
        },
    ),
    "gateway subnet": (
        "network:Subnet",
        "subnetName",
        "GatewaySubnet",
        {"virtualNetworkName": "network", "addressPrefix": "10.0.255.0/27"},
    ),
    "balancer": (
        "network:LoadBalancer",
        "loadBalancerName",
        "api",
        {
            "sku": {"name": "Standard"},
            "frontendIPConfigurations": [
                {
                    "name": "api",
                    "subnet": {"id": NODES},
                    "privateIPAllocationMethod": "Static",
                    "privateIPAddress": "10.0.1.4",
                    "zones": ["1", "2", "3"],
                }
            ],
            "backendAddressPools": [{"name": "api"}, {"name": "idle"}],
            "probes": [{"name": "api", "protocol": "Https", "port": 6443, "requestPath": "/readyz"}],
            "loadBalancingRules": [
                {
                    "name": "api",
                    "protocol": "Tcp",
                    "frontendPort": 6443,
                    "backendPort": 6443,
                    "frontendIPConfiguration": own("frontendIPConfigurations/api"),
                    "backendAddressPool": own("backendAddressPools/api"),
                    "probe": own("probes/api"),
                }
            ],
        },
    ),
    "interface": (
        "network:NetworkInterface",
        "networkInterfaceName",
        "etcd-1",
        {
            "enableAcceleratedNetworking": True,
            "ipConfigurations": [
                {
                    "name": "main",
                    "subnet": {"id": NODES},
                    "privateIPAllocationMethod": "Static",
                    "privateIPAddress": "10.0.1.10",
                }
            ],
        },
    ),
    "identity": ("managedidentity:UserAssignedIdentity", "resourceName", "host", {}),
    "vault": (
        "keyvault:Vault",
        "vaultName",
        "apes-vault",
        {
            "properties": {
                "tenantId": TENANT,
                "sku": {"family": "A", "name": "standard"},
                "enableRbacAuthorization": True,
                "enablePurgeProtection": True,
                "softDeleteRetentionInDays": 30,
            }
        },
    ),
    "secret": (
        "keyvault:Secret",
        "secretName",
        "payload",
        {"vaultName": "apes-vault", "properties": {"value": "hidden", "contentType": "text/plain"}},
    ),
    "key": (
        "keyvault:Key",
        "keyName",
        "disks",
        {"vaultName": "apes-vault", "properties": {"kty": "RSA", "keySize": 3072}},
    ),
    "host's role": (
        "authorization:RoleAssignment",
        "roleAssignmentName",
        guid("host"),
        {
            "scope": VAULT,
            "principalId": guid(f"{HOST} principal"),
            "principalType": "ServicePrincipal",
            "roleDefinitionId": ROLE,
        },
    ),
    "own role": (
        "authorization:RoleDefinition",
        "roleDefinitionId",
        guid("own role"),
        {
            "roleName": "writes one secret",
            "scope": GROUP,
            "assignableScopes": [GROUP],
            "permissions": [{"dataActions": ["Microsoft.KeyVault/vaults/secrets/setSecret/action"]}],
        },
    ),
    "encryption": (
        "compute:DiskEncryptionSet",
        "diskEncryptionSetName",
        "disks",
        {
            "identity": {"type": "SystemAssigned"},
            "activeKey": {"keyUrl": f"{KEY_URI}/{'0' * 32}", "sourceVault": {"id": VAULT}},
        },
    ),
    "encryption's role": (
        "authorization:RoleAssignment",
        "roleAssignmentName",
        guid("encryption"),
        {
            "scope": VAULT,
            "principalId": guid(f"{ENCRYPTION} principal"),
            "principalType": "ServicePrincipal",
            "roleDefinitionId": ROLE,
        },
    ),
    "disk": (
        "compute:Disk",
        "diskName",
        "etcd-1",
        {
            "sku": {"name": "PremiumV2_LRS"},
            "zones": ["1"],
            "diskSizeGB": 64,
            "diskIOPSReadWrite": 5000,
            "diskMBpsReadWrite": 200,
            "creationData": {"createOption": "Empty"},
            "encryption": {"type": "EncryptionAtRestWithCustomerKey", "diskEncryptionSetId": ENCRYPTION},
        },
    ),
    "proximity": ("compute:ProximityPlacementGroup", "proximityPlacementGroupName", "close", {}),
    "reservations": ("compute:CapacityReservationGroup", "capacityReservationGroupName", "kept", {"zones": ["1"]}),
    "machine": (
        "compute:VirtualMachine",
        "vmName",
        "etcd-1",
        {
            "zones": ["1"],
            "identity": AS_HOST,
            "hardwareProfile": {"vmSize": "Standard_D4s_v5"},
            "osProfile": {"computerName": "etcd-1", **OS},
            "securityProfile": {"securityType": "TrustedLaunch", "uefiSettings": {"secureBootEnabled": True}},
            "networkProfile": {"networkInterfaces": [{"id": INTERFACE, "primary": True}]},
            "storageProfile": {
                "imageReference": IMAGE,
                "osDisk": OS_DISK,
                "dataDisks": [
                    {"lun": 0, "createOption": "Attach", "caching": "None", "managedDisk": {"id": DATA_DISK}}
                ],
            },
        },
    ),
    "scale set": (
        "compute:VirtualMachineScaleSet",
        "vmScaleSetName",
        "api",
        {
            "zones": ["1", "2"],
            "identity": AS_HOST,
            "sku": {"name": "Standard_D4s_v5", "tier": "Standard", "capacity": 3},
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "upgradePolicy": {"mode": "Rolling", "rollingUpgradePolicy": {"maxSurge": True}},
            "automaticRepairsPolicy": {"enabled": True},
            "virtualMachineProfile": {
                "priority": "Regular",
                "osProfile": {"computerNamePrefix": "api", **OS},
                "securityProfile": {"securityType": "TrustedLaunch", "uefiSettings": {"secureBootEnabled": True}},
                "storageProfile": {"imageReference": IMAGE, "osDisk": OS_DISK},
                "networkProfile": {
                    "healthProbe": own("probes/api"),
                    "networkInterfaceConfigurations": [
                        {
                            "name": "main",
                            "primary": True,
                            "enableAcceleratedNetworking": True,
                            "ipConfigurations": [
                                {
                                    "name": "main",
                                    "subnet": {"id": NODES},
                                    "loadBalancerBackendAddressPools": [own("backendAddressPools/api")],
                                }
                            ],
                        }
                    ],
                },
            },
        },
    ),
}
