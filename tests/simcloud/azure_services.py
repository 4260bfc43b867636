"""The other Azure resources of one cluster: storage, DNS, endpoints, logs, tunnels."""

from __future__ import annotations

from typing import Any

from tests.simcloud.azure_places import AS_HOST, DATA_DISK, GATEWAY, GATEWAY_SUBNET, HOST, NET, NODES, STORE, VAULT

# Key -> token's module and type, name property, name, and the other inputs.
SERVICES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
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
