"""One cluster's worth of Azure: inputs that Azure takes, of every type, in the order in which they can be made."""

from __future__ import annotations

import copy
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from simcloud.azure.common import TENANT
from simcloud.identifiers import guid
from simcloud.simulation import SimulatedCloud
from simcloud.world import Record

SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000000"
GROUP = f"{SUBSCRIPTION}/resourceGroups/apes"
NET = f"{GROUP}/providers/Microsoft.Network"
COMPUTE = f"{GROUP}/providers/Microsoft.Compute"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/apes-vault"
STORE = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/apesbackups"
HOST = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/host"
ROLE = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/e147488a-f6f5-4113-8e2d-b22465e65bf6"
NODES = f"{NET}/virtualNetworks/network/subnets/nodes"
GATEWAY_SUBNET = f"{NET}/virtualNetworks/network/subnets/GatewaySubnet"
BALANCER = f"{NET}/loadBalancers/api"
DATA_DISK, ENCRYPTION = f"{COMPUTE}/disks/etcd-1", f"{COMPUTE}/diskEncryptionSets/disks"
INTERFACE, PROXIMITY = f"{NET}/networkInterfaces/etcd-1", f"{COMPUTE}/proximityPlacementGroups/close"
GATEWAY = f"{NET}/virtualNetworkGateways/gateway"
KEY_URI = "https://apes-vault.vault.azure.net/keys/disks"
RULE = {
    "name": "etcd",
    "priority": 100,
    "direction": "Inbound",
    "access": "Allow",
    "protocol": "Tcp",
    "sourceAddressPrefix": "10.0.1.0/24",
    "sourcePortRange": "*",
    "destinationAddressPrefix": "10.0.1.0/24",
    "destinationPortRanges": ["2379-2380", "2381"],
}
OS = {
    "adminUsername": "nobody-logs-in",
    "customData": b64encode(b"#cloud-config").decode(),
    "linuxConfiguration": {
        "disablePasswordAuthentication": True,
        "ssh": {"publicKeys": [{"path": "/home/nobody-logs-in/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA"}]},
    },
}
IMAGE = {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}
OS_DISK = {
    "createOption": "FromImage",
    "managedDisk": {"storageAccountType": "Premium_LRS", "diskEncryptionSet": {"id": ENCRYPTION}},
}
AS_HOST = {"type": "UserAssigned", "userAssignedIdentities": [HOST]}


def own(name: str) -> dict[str, Any]:
    """Inputs by which the load balancer's rule names its own parts."""
    return {"id": f"{BALANCER}/{name}"}


# Key -> token's module and type, name property, name, and the other inputs.
ESTATE: dict[str, tuple[str, str, str, dict[str, Any]]] = {
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
    "account": (
        "storage:StorageAccount",
        "accountName",
        "apesbackups",
        {
            "kind": "StorageV2",
            "sku": {"name": "Standard_ZRS"},
            "identity": AS_HOST,
            "encryption": {
                "keySource": "Microsoft.Keyvault",
                "keyVaultProperties": {"keyVaultUri": "https://apes-vault.vault.azure.net/", "keyName": "disks"},
                "encryptionIdentity": {"encryptionUserAssignedIdentity": HOST},
            },
        },
    ),
    "blobs": (
        "storage:BlobServiceProperties",
        "blobServicesName",
        "default",
        {
            "accountName": "apesbackups",
            "isVersioningEnabled": True,
            "changeFeed": {"enabled": True},
            "deleteRetentionPolicy": {"enabled": True, "days": 30},
            "restorePolicy": {"enabled": True, "days": 7},
        },
    ),
    "container": (
        "storage:BlobContainer",
        "containerName",
        "backups",
        {"accountName": "apesbackups", "immutableStorageWithVersioning": {"enabled": True}},
    ),
    "immutability": (
        "storage:BlobContainerImmutabilityPolicy",
        "immutabilityPolicyName",
        "default",
        {"accountName": "apesbackups", "containerName": "backups", "immutabilityPeriodSinceCreationInDays": 7},
    ),
    "lifecycle": (
        "storage:ManagementPolicy",
        "managementPolicyName",
        "default",
        {"accountName": "apesbackups", "policy": {"rules": [{"name": "old", "type": "Lifecycle"}]}},
    ),
    "zone": (
        "privatedns:PrivateZone",
        "privateZoneName",
        "privatelink.vaultcore.azure.net",
        {"location": "global"},
    ),
    "link": (
        "privatedns:VirtualNetworkLink",
        "virtualNetworkLinkName",
        "network",
        {
            "location": "global",
            "privateZoneName": "privatelink.vaultcore.azure.net",
            "registrationEnabled": False,
            "virtualNetwork": {"id": f"{NET}/virtualNetworks/network"},
        },
    ),
    "records": (
        "privatedns:PrivateRecordSet",
        "relativeRecordSetName",
        "api",
        {
            "privateZoneName": "privatelink.vaultcore.azure.net",
            "recordType": "A",
            "ttl": 60,
            "aRecords": [{"ipv4Address": "10.0.1.4"}],
        },
    ),
    "endpoint": (
        "network:PrivateEndpoint",
        "privateEndpointName",
        "vault",
        {
            "subnet": {"id": NODES},
            "privateLinkServiceConnections": [{"name": "vault", "privateLinkServiceId": VAULT, "groupIds": ["vault"]}],
        },
    ),
    "zone group": (
        "network:PrivateDnsZoneGroup",
        "privateDnsZoneGroupName",
        "default",
        {
            "privateEndpointName": "vault",
            "privateDnsZoneConfigs": [
                {"name": "vault", "privateDnsZoneId": f"{NET}/privateDnsZones/privatelink.vaultcore.azure.net"}
            ],
        },
    ),
    "flow log": (
        "network:FlowLog",
        "flowLogName",
        "network",
        {
            "resourceGroupName": "NetworkWatcherRG",
            "networkWatcherName": "NetworkWatcher_westeurope",
            "targetResourceId": f"{NET}/virtualNetworks/network",
            "storageId": STORE,
            "enabled": True,
        },
    ),
    "gateway": (
        "network:VirtualNetworkGateway",
        "virtualNetworkGatewayName",
        "gateway",
        {
            "gatewayType": "Vpn",
            "vpnType": "RouteBased",
            "sku": {"name": "VpnGw2AZ", "tier": "VpnGw2AZ"},
            "enableBgp": True,
            "activeActive": True,
            "ipConfigurations": [
                {
                    "name": f"end-{i}",
                    "subnet": {"id": GATEWAY_SUBNET},
                    "publicIPAddress": {"id": f"{NET}/publicIPAddresses/vpn-{i}"},
                }
                for i in (1, 2)
            ],
            "bgpSettings": {
                "asn": 65515,
                "bgpPeeringAddresses": [
                    {
                        "ipconfigurationId": f"{GATEWAY}/ipConfigurations/end-{i}",
                        "customBgpIpAddresses": [f"169.254.21.{4 * i}"],
                    }
                    for i in (1, 2)
                ],
            },
        },
    ),
    "site": (
        "network:LocalNetworkGateway",
        "localNetworkGatewayName",
        "sjc-1",
        {
            "gatewayIpAddress": "203.0.113.7",
            "bgpSettings": {"asn": 64600, "bgpPeeringAddress": "169.254.21.5"},
        },
    ),
    "connection": (
        "network:VirtualNetworkGatewayConnection",
        "virtualNetworkGatewayConnectionName",
        "sjc-1",
        {
            "connectionType": "IPsec",
            "connectionProtocol": "IKEv2",
            "enableBgp": True,
            "sharedKey": "correcthorsebatterystaple",
            "virtualNetworkGateway1": {"id": GATEWAY},
            "localNetworkGateway2": {"id": f"{NET}/localNetworkGateways/sjc-1"},
            "gatewayCustomBgpIpAddresses": [
                {"ipConfigurationId": f"{GATEWAY}/ipConfigurations/end-1", "customBgpIpAddress": "169.254.21.4"}
            ],
        },
    ),
    "lock": (
        "authorization:ManagementLockByScope",
        "lockName",
        "keep",
        {"scope": DATA_DISK, "level": "CanNotDelete"},
    ),
}

# Of these, an update is refused for another reason: most of what is looked at cannot change.
MADE_ANEW = {"nat", "endpoint", "disk", "machine", "proximity", "connection", "gateway"}

_WITHOUT_GROUP = {
    "authorization:RoleAssignment",
    "authorization:RoleDefinition",
    "authorization:ManagementLockByScope",
}


class Estate:
    """The estate in a simulated Azure."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.records: dict[str, Record] = {}
        for key in ESTATE:
            self.records[key] = api.create(token(key), key, **inputs(key))

    @property
    def simulation(self) -> SimulatedCloud:
        return self.api.simulation  # type: ignore[no-any-return]

    def __getitem__(self, key: str) -> Record:
        return self.records[key]

    def twin(self, key: str, name: str | None, **changes: Any) -> Record:
        """Another of the same, of another name. changes: of paths; see `changed`."""
        return self.api.create(  # type: ignore[no-any-return]
            token(key), f"{key} twin", **changed({**inputs(key), ESTATE[key][1]: name}, changes)
        )

    def update(self, key: str, changes: Mapping[str, Any]) -> Record:
        """The same with other inputs."""
        record = self.records[key]
        new = changed(record.inputs, changes)
        return self.simulation.update(self.api.settings, record.type, record.urn, record.id, new)

    def anew(self, key: str, changes: Mapping[str, Any]) -> Record:
        """The same once more in the place of the old one, which is gone without any rule."""
        self.without(key)
        return self.api.create(token(key), key, **changed(inputs(key), changes))  # type: ignore[no-any-return]

    def again(self, key: str) -> Record:
        """The same once more."""
        return self.api.create(token(key), key, **inputs(key))  # type: ignore[no-any-return]

    def retry(self, key: str, changes: Mapping[str, Any]) -> Record:
        """The same with other inputs, made anew if an update would not get as far as to look at them."""
        return self.anew(key, changes) if key in MADE_ANEW else self.update(key, changes)

    def without(self, *keys: str) -> None:
        """Take away what stands in a test's way, without any rule."""
        for key in keys:
            self.api.world.remove(self.records[key].type, self.records[key].id)


def token(key: str) -> str:
    return f"azure-native:{ESTATE[key][0]}"


def inputs(key: str) -> dict[str, Any]:
    """What a program would declare."""
    kind, property_, name, others = ESTATE[key]
    group = {} if kind in _WITHOUT_GROUP else {"resourceGroupName": "apes"}
    return copy.deepcopy({**group, property_: name, **others})


def changed(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with other values at paths like ``ipConfigurations[0].subnet.id``; None takes one away."""
    made = copy.deepcopy(dict(given))
    for path, value in changes.items():
        parts = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
        holder: Any = made
        for part in parts[:-1]:
            holder = holder[part] if isinstance(part, int) else holder.setdefault(part, {})
        if value is None:
            holder.pop(parts[-1], None)
        elif isinstance(holder, list) and parts[-1] == len(holder):
            holder.append(value)
        else:
            holder[parts[-1]] = value
    return made
