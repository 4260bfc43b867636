"""IDs of resources in the estate, and parts of it that tests refer to."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

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
    """Return the inputs by which the load balancer's rule refers to its own parts."""
    return {"id": f"{BALANCER}/{name}"}
