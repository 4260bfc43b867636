"""Properties of Azure's resources that force a replacement, and those that only look changeable."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.azure import CLOUD
from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import GATEWAY, INTERFACE, NET
from tests.simcloud.azure_support import ESTATE, Estate, changed, inputs, token

# Key -> inputs whose change replaces the resource, among those that the estate or Azure sets.
REPLACES = {
    "group": "resourceGroupName location",
    "address": "resourceGroupName publicIpAddressName location sku publicIPAddressVersion publicIPPrefix",
    "nat": "resourceGroupName natGatewayName location",
    "routes": "resourceGroupName routeTableName location",
    "rules": "resourceGroupName networkSecurityGroupName location",
    "network": "resourceGroupName virtualNetworkName location extendedLocation",
    "subnet": "resourceGroupName virtualNetworkName subnetName",
    "balancer": "resourceGroupName loadBalancerName location",
    "interface": "resourceGroupName networkInterfaceName location extendedLocation",
    "identity": "resourceGroupName resourceName location",
    "vault": "resourceGroupName vaultName location",
    "secret": "resourceGroupName vaultName secretName",
    "key": "resourceGroupName vaultName keyName",
    "host's role": "scope principalId roleAssignmentName",
    "own role": "scope roleDefinitionId",
    "encryption": "resourceGroupName diskEncryptionSetName location",
    "disk": "resourceGroupName diskName location",
    "proximity": "resourceGroupName proximityPlacementGroupName location",
    "reservations": "resourceGroupName capacityReservationGroupName location",
    "machine": "resourceGroupName vmName location",
    "scale set": "resourceGroupName vmScaleSetName location extendedLocation",
    "account": "resourceGroupName accountName location isHnsEnabled",
    "blobs": "resourceGroupName accountName blobServicesName",
    "container": "resourceGroupName accountName containerName",
    "immutability": "resourceGroupName accountName containerName immutabilityPolicyName",
    "lifecycle": "resourceGroupName accountName managementPolicyName",
    "zone": "resourceGroupName privateZoneName location",
    "link": "resourceGroupName privateZoneName virtualNetworkLinkName location",
    "records": "resourceGroupName privateZoneName recordType relativeRecordSetName",
    "endpoint": "resourceGroupName privateEndpointName location subnet extendedLocation",
    "zone group": "resourceGroupName privateEndpointName privateDnsZoneGroupName",
    "flow log": "resourceGroupName networkWatcherName flowLogName location",
    "gateway": "resourceGroupName virtualNetworkGatewayName location",
    "site": "resourceGroupName localNetworkGatewayName location",
    "connection": "resourceGroupName virtualNetworkGatewayConnectionName location",
    "lock": "scope lockName",
}

# Key -> paths whose change a plan shows as an update but Azure refuses, with a new value.
FIXED: dict[str, dict[str, Any]] = {
    "address": {"zones": ["2"]},
    "nat": {"zones": ["2"], "sku.name": "StandardV2"},
    "balancer": {"sku.name": "Gateway", "frontendIPConfigurations[0].zones": ["1"]},
    "disk": {"zones": ["2"], "creationData.createOption": "Copy"},
    "proximity": {"zones": ["1"], "proximityPlacementGroupType": "Ultra"},
    "reservations": {"zones": ["2"]},
    "machine": {
        "zones": ["2"],
        "priority": "Spot",
        "platformFaultDomain": 1,
        "osProfile.computerName": "other",
        "osProfile.adminUsername": "other",
        "osProfile.customData": "b3RoZXI=",
        "osProfile.linuxConfiguration.ssh.publicKeys[0].keyData": "other",
        "osProfile.linuxConfiguration.disablePasswordAuthentication": False,
        "storageProfile.imageReference.sku": "other",
        "storageProfile.osDisk.name": "other",
        "storageProfile.osDisk.createOption": "Attach",
    },
    "scale set": {
        "orchestrationMode": "Flexible",
        "platformFaultDomainCount": 5,
        "virtualMachineProfile.priority": "Spot",
        "virtualMachineProfile.osProfile.adminUsername": "other",
        "virtualMachineProfile.osProfile.computerNamePrefix": "other",
        "virtualMachineProfile.storageProfile.imageReference.publisher": "other",
        "virtualMachineProfile.storageProfile.imageReference.offer": "other",
        "virtualMachineProfile.storageProfile.osDisk.managedDisk.storageAccountType": "StandardSSD_LRS",
    },
    "account": {
        "enableNfsV3": True,
        "dnsEndpointType": "AzureDnsZone",
        "immutableStorageWithVersioning.enabled": True,
        "encryption.requireInfrastructureEncryption": True,
    },
    "container": {"immutableStorageWithVersioning.enabled": False, "defaultEncryptionScope": "other"},
    "link": {"virtualNetwork.id": f"{NET}/virtualNetworks/other"},
    "endpoint": {"customNetworkInterfaceName": "other", "privateLinkServiceConnections[0].privateLinkServiceId": "x"},
    "flow log": {"targetResourceId": INTERFACE},
    "gateway": {"gatewayType": "ExpressRoute", "vpnType": "PolicyBased", "vpnGatewayGeneration": "Generation1"},
    "connection": {
        "connectionType": "Vnet2Vnet",
        "connectionProtocol": "IKEv1",
        "virtualNetworkGateway1.id": f"{GATEWAY}-2",
        "localNetworkGateway2.id": f"{NET}/localNetworkGateways/other",
    },
}

# Changes that occur during a cluster's life.
UPDATES: dict[str, dict[str, Any]] = {
    "disk": {"diskSizeGB": 128, "diskIOPSReadWrite": 6000},
    "machine": {"hardwareProfile.vmSize": "Standard_D8s_v5"},
    "scale set": {
        "zones": ["1", "2", "3"],
        "sku.capacity": 5,
        "virtualMachineProfile.osProfile.customData": "b3RoZXI=",
        "virtualMachineProfile.storageProfile.imageReference.sku": "server-gen2",
        "virtualMachineProfile.storageProfile.imageReference.version": "24.04.202601010",
    },
    "rules": {"securityRules[0].destinationPortRanges": ["2379"]},
    "balancer": {"probes[0].requestPath": "/livez"},
    "secret": {"properties.value": "another"},
    "vault": {"properties.publicNetworkAccess": "Disabled"},
    "records": {"aRecords[0].ipv4Address": "10.0.1.5"},
    "site": {"gatewayIpAddress": "203.0.113.8"},
    "connection": {"sharedKey": "another"},
    "immutability": {"immutabilityPeriodSinceCreationInDays": 8},
    "blobs": {"deleteRetentionPolicy.days": 31},
}


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


def test_every_type_is_in_the_estate_and_in_the_table() -> None:
    assert {token(key) for key in ESTATE} == set(CLOUD.types) == {token(key) for key in REPLACES}


@pytest.mark.parametrize("key", REPLACES)
def test_only_changes_of_these_properties_replace(estate: Estate, key: str) -> None:
    record = estate[key]
    expected = set(REPLACES[key].split())
    replacing = {
        name
        for name in {*record.inputs, *expected}
        if estate.simulation.diff(record.type, record.inputs, {**record.inputs, name: "other"}).replaces
    }
    assert replacing == expected


@pytest.mark.parametrize(("key", "path"), [(key, path) for key, paths in FIXED.items() for path in paths])
def test_changes_of_these_properties_are_planned_as_an_update_and_refused(estate: Estate, key: str, path: str) -> None:
    record = estate[key]
    new = changed(record.inputs, {path: FIXED[key][path]})
    plan = estate.simulation.diff(record.type, record.inputs, new)
    assert plan.changes and not plan.replaces
    with pytest.raises(RefusalError, match="PropertyChangeNotAllowed|ResourceAvailabilityZonesCannotBeModified"):
        estate.update(key, {path: FIXED[key][path]})


@pytest.mark.parametrize("key", UPDATES)
def test_changes_that_a_cluster_makes_are_updates(estate: Estate, key: str) -> None:
    record = estate[key]
    assert estate.simulation.diff(record.type, record.inputs, changed(record.inputs, UPDATES[key])).replaces == []
    assert estate.update(key, UPDATES[key]).id == record.id


@pytest.mark.parametrize("key", ESTATE)
def test_declaring_the_same_inputs_again_is_no_change(estate: Estate, key: str) -> None:
    record = estate[key]
    checked = estate.api.checked(token(key), key, inputs(key))
    assert estate.simulation.diff(record.type, record.inputs, checked).changes == []
