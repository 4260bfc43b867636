"""Inputs that Azure refused of others, from reports of failed runs and from its documentation.

They were collected without a look at simcloud's rules; each has the report, or the page of the documentation.
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import RULE, VAULT, own
from tests.simcloud.azure_support import Estate

POLICY = {
    "saLifeTimeSeconds": 3600,
    "saDataSizeKilobytes": 102400000,
    "ipsecEncryption": "GCMAES256",
    "ipsecIntegrity": "GCMAES256",
    "ikeEncryption": "AES256",
    "ikeIntegrity": "SHA256",
    "dhGroup": "DHGroup14",
    "pfsGroup": "PFS2048",
}
DELETED = {"baseBlob": {"delete": {"daysAfterModificationGreaterThan": 30}}}


def _policy(**changes: Any) -> dict[str, Any]:
    return {"ipsecPolicies": [{**POLICY, **changes}]}


def _lifecycle(actions: dict[str, Any], blobs: str = "blockBlob", name: str = "old") -> dict[str, Any]:
    definition = {"actions": actions, "filters": {"blobTypes": [blobs]}}
    return {"policy.rules": [{"name": name, "type": "Lifecycle", "definition": definition}]}


# What, its report or page, key in the estate, changes, words of the refusal.
ROWS: list[tuple[str, str, str, dict[str, Any], str]] = [
    # The list as it was collected.
    ("two rules of one priority", "grycap/im 359", "rules", {"securityRules[1]": {**RULE, "name": "b"}}, "SecurityRuleConflict"),
    ("ports with a comma", "hashicorp/terraform-provider-azurerm 659", "rules",
     {"securityRules[0].destinationPortRanges": ["80,81"]}, "SecurityRuleInvalidPortRange"),
    ("a Basic load balancer", "Azure/terraform-azurerm-loadbalancer 32", "balancer", {"sku.name": "Basic"}, "SKU Basic"),
    ("a dynamic Standard address", "MicrosoftDocs/azure-docs 11576", "address", {"publicIPAllocationMethod": "Dynamic"}, "MustBeStatic"),
    ("zones of a regional gateway", "Azure/Azure-Landing-Zones 2660", "gateway", {"sku": {"name": "VpnGw2", "tier": "VpnGw2"}},
     "NonAzSkusNotAllowedForVPNGateway"),
    ("a cache of a fast disk", "kubernetes-sigs/cluster-api-provider-azure 2429", "machine",
     {"storageProfile.dataDisks[0].caching": "ReadWrite"}, "account type PremiumV2_LRS"),
    ("a fast disk without a zone", "Azure/azure-sdk-for-net 39112", "disk", {"zones": None}, "PremiumV2_LRS must"),
    ("a vault without purge protection", "Azure/azure-cli 29115", "vault", {"properties.enablePurgeProtection": False},
     "cannot be set to false"),
    ("a principal by name", "Azure/azure-powershell 16627", "host's role", {"principalId": "host"}, "PrincipalNotFound"),
    ("fault domains in zones", "kubernetes-sigs/cluster-api-provider-azure 4451", "scale set",
     {"orchestrationMode": "Flexible", "platformFaultDomainCount": 2, "upgradePolicy": None, "automaticRepairsPolicy": None,
      "virtualMachineProfile.networkProfile.healthProbe": None, "virtualMachineProfile.networkProfile.networkApiVersion": "2022-11-01"},
     "platformFaultDomainCount"),
    ("a group of another service", "Azure/azure-cli 11667", "endpoint",
     {"privateLinkServiceConnections[0].groupIds": ["blobs"]}, "wants blobs"),
    ("Azure's own ASN", "About BGP and VPN Gateway", "site", {"bgpSettings.asn": 65515}, "reserved by Azure"),
    ("an administrator called admin", "FAQ about Virtual Machines", "machine", {"osProfile.adminUsername": "admin"},
     "Admin Username specified is not allowed"),
    ("keys of IPsec for 100 s", "IPsec policies", "connection", _policy(saLifeTimeSeconds=100), "use 300 to 172799"),
    # What was accepted until it was tried.
    ("GCM for one half", "IPsec policies", "connection", _policy(ipsecIntegrity="SHA256"), "with GCM"),
    ("a peer that is dead after 5 s", "VirtualNetworkGatewayConnection", "connection", {"dpdTimeoutSeconds": 5}, "use 9 to 3600"),
    ("a large gateway of the first generation", "About gateway SKUs", "gateway",
     {"sku": {"name": "VpnGw4AZ", "tier": "VpnGw4AZ"}, "vpnGatewayGeneration": "Generation1"}, "Generation2"),
    ("ranges that overlap", "alan-turing-institute/data-safe-haven 2077", "rules",
     {"securityRules[0].sourceAddressPrefix": None, "securityRules[0].sourceAddressPrefixes": ["1.1.0.0/24", "1.1.0.22/32"]},
     "OverlappingSubnetsNotPermittedInSecurityRule"),
    ("a range with bits of a host", "Azure/azure-powershell 4557", "rules",
     {"securityRules[0].sourceAddressPrefix": "50.206.209.68/27"}, "sourceAddressPrefix"),
    ("a long description", "SecurityRule", "rules", {"securityRules[0].description": "x" * 141}, "at most 140"),
    ("a network of loopback addresses", "Virtual Network FAQ", "network", {"addressSpace.addressPrefixes": ["127.0.0.0/16"]},
     "it overlaps one of"),
    ("a DNS server by name", "VirtualNetwork", "network", {"dhcpOptions": {"dnsServers": ["dns.example"]}}, "dnsServers"),
    ("an unknown service endpoint", "Virtual network service endpoints", "subnet",
     {"serviceEndpoints": [{"service": "Microsoft.Store"}]}, "Microsoft.Storage"),
    ("an idle time of half an hour", "Public IP addresses", "address", {"idleTimeoutInMinutes": 31}, "use 4 to 30"),
    ("a label with a capital", "PublicIPAddressDnsSettings", "address", {"dnsSettings": {"domainNameLabel": "Apes"}}, "domainNameLabel"),
    ("a short idle time of a rule", "TCP reset and idle timeout", "balancer", {"loadBalancingRules[0].idleTimeoutInMinutes": 3},
     "use 4 to 100"),
    ("a probe of port 0", "Probe", "balancer", {"probes[0].port": 0}, r"probes\[\].port"),
    ("a frontend of port 70000", "LoadBalancingRule", "balancer",
     {"loadBalancingRules[0].frontendPort": 70000, "loadBalancingRules[0].frontendIPConfiguration": own("frontendIPConfigurations/api")},
     "frontendPort"),
    ("21 addresses of a name", "Azure DNS limits", "records", {"aRecords": [{"ipv4Address": f"10.0.1.{i}"} for i in range(21)]}, "at most 20"),
    ("logs for more than a year", "RetentionPolicyParameters", "flow log", {"retentionPolicy": {"enabled": True, "days": 366}}, "use 0 to 365"),
    ("a tier of another kind of disk", "Change the performance of disks", "disk", {"tier": "P30"}, "only Premium SSDs"),
    ("a disk of 20 machines", "Share an Azure managed disk", "disk", {"maxShares": 20}, "use 1 to 15"),
    ("a copy of nothing", "CreationData", "disk", {"creationData.createOption": "Copy"}, "copies need their source"),
    ("a host with an underscore", "Naming rules and restrictions", "machine", {"osProfile.computerName": "etcd_1"}, "computerName"),
    ("a key of an unknown kind", "Create and manage SSH keys", "machine",
     {"osProfile.linuxConfiguration.ssh.publicKeys[0].keyData": "ecdsa-sha2-nistp256 AAAA"}, "ssh-ed25519"),
    ("a key of another user", "SshPublicKey", "machine",
     {"osProfile.linuxConfiguration.ssh.publicKeys[0].path": "/root/.ssh/authorized_keys"}, "authorized_keys"),
    ("a 65th disk", "DataDisk", "machine", {"storageProfile.dataDisks[0].lun": 64}, "use 0 to 63"),
    ("a repair after five minutes", "Automatic instance repairs", "scale set", {"automaticRepairsPolicy.gracePeriod": "PT5M"}, "PT10M to PT90M"),
    ("one zone twice", "Use availability zones", "scale set", {"zones": ["1", "1"]}, "give each once"),
    ("a right to data among rights", "Azure resource provider operations", "own role",
     {"permissions": [{"actions": ["Microsoft.KeyVault/vaults/secrets/setSecret/action"]}]}, "write it in dataActions"),
    ("a long note", "ManagementLockObject", "lock", {"notes": "x" * 513}, "at most 512"),
    ("a private address at a vault", "Configure network security for Azure Key Vault", "vault",
     {"properties.networkAcls": {"defaultAction": "Deny", "ipRules": [{"value": "10.0.0.0/24"}]}}, "private addresses are not"),
    ("a key that expires after 20 days", "Configure key auto-rotation", "key",
     {"properties.rotationPolicy": {"attributes": {"expiryTime": "P20D"}}}, "use 28 days or more"),
    ("a private address at an account", "Azure Storage firewall rules", "account",
     {"networkRuleSet": {"defaultAction": "Deny", "ipRules": [{"iPAddressOrRange": "10.0.0.0/24"}]}}, "private addresses are not"),
    ("append blobs in another tier", "Lifecycle management policies", "lifecycle",
     _lifecycle({"baseBlob": {"tierToCool": {"daysAfterModificationGreaterThan": 30}}}, "appendBlob"), "only block blobs"),
    ("an unknown kind of blob", "Lifecycle management policies", "lifecycle", _lifecycle(DELETED, "pageBlobs"), "blockBlob, appendBlob"),
    ("a tag with a slash", "Use tags", "network", {"tags": {"a/b": "x"}}, "InvalidTagNameCharacters"),
    ("51 tags", "Use tags", "network", {"tags": {f"t{i}": "" for i in range(51)}}, "at most 50"),
    ("a tag of Azure's own", "Tags - Create Or Update", "network", {"tags": {"microsoft-x": "y"}}, "TagNameReserved"),
    ("16 tags of a zone", "Use tags", "zone", {"tags": {f"t{i}": "" for i in range(16)}}, "at most 15"),
    ("a region that is none", "Azure locations API", "network", {"location": "westeuropa"}, "LocationNotAvailableForResourceType"),
    ("a condition of the first version", "Role assignment conditions", "host's role", {"condition": "true", "conditionVersion": "1.0"}, "use one of 2.0"),
    ("a disk to attach that is none", "DataDisk", "machine", {"storageProfile.dataDisks[0].managedDisk": None}, "name the disk"),
    ("an empty system disk", "OSDisk", "machine", {"storageProfile.osDisk.createOption": "Empty"}, "FromImage"),
    ("an account for diagnostics by name", "BootDiagnostics", "machine",
     {"diagnosticsProfile": {"bootDiagnostics": {"enabled": True, "storageUri": "apes"}}}, "write https"),
    ("fewer machines than none", "Virtual Machine Scale Sets", "scale set", {"sku.capacity": -1}, "use 0 to 1000"),
    ("three fault domains in zones", "Fault domains", "scale set", {"platformFaultDomainCount": 3}, "it is 1, or 5"),
    ("a premium scale set", "Virtual Machine Scale Sets: Sku", "scale set", {"sku.tier": "Premium"}, "use one of Standard"),
    ("a DNS server of an interface by name", "NetworkInterfaceDnsSettings", "interface", {"dnsSettings": {"dnsServers": ["dns.apes"]}}, "give addresses"),
    ("a network's ranges that overlap", "Virtual Network FAQ", "network", {"addressSpace.addressPrefixes": ["10.0.0.0/16", "10.0.1.0/24"]}, "overlap"),
    ("NFS without folders", "NFS 3.0 protocol support for Azure Blob Storage", "account", {"enableNfsV3": True}, "set isHnsEnabled"),
    ("eleven prefixes", "Lifecycle management policies: filters", "lifecycle",
     {"policy.rules": [{"name": "a", "type": "Lifecycle", "definition": {
         "actions": DELETED, "filters": {"blobTypes": ["blockBlob"], "prefixMatch": [f"a{i}" for i in range(11)]}}}]}, "at most 10"),
    ("two connections of an endpoint", "Private Endpoints", "endpoint",
     {"privateLinkServiceConnections[1]": {"name": "b", "privateLinkServiceId": VAULT, "groupIds": ["vault"]}}, "at most 1"),
    ("analytics every half hour", "Traffic analytics", "flow log",
     {"flowAnalyticsConfiguration": {"networkWatcherFlowAnalyticsConfiguration": {"enabled": True, "trafficAnalyticsInterval": 30}}}, "use one of 10, 60"),
    ("a rotation before no end", "Configure key auto-rotation", "key",
     {"properties.rotationPolicy": {"lifetimeActions": [{"action": {"type": "rotate"}, "trigger": {"timeBeforeExpiry": "P30D"}}]}}, "expiryTime"),
    ("private access by nothing", "Restrict import/export access for managed disks", "disk", {"networkAccessPolicy": "AllowPrivate"}, "disk access"),
    ("a customer's key without a set", "Server-side encryption of Azure Disk Storage", "disk", {"encryption.diskEncryptionSetId": None}, "encryption set"),
]  # fmt: skip

# Others depend on these, or their names stay taken after a deletion.
UPDATED = {"vault", "key"}


@pytest.mark.parametrize(("key", "changes", "words"), [row[2:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_azure_refused_of_others_is_refused(api: Any, key: str, changes: dict[str, Any], words: str) -> None:
    estate = Estate(api("azure"))
    with pytest.raises(RefusalError, match=words):
        (estate.update if key in UPDATED else estate.recreate)(key, changes)


def test_a_zonal_gateway_needs_addresses_with_zones(api: Any) -> None:
    """Azure/ResourceModules 2609, ansible-collections/azure 2208."""
    estate = Estate(api("azure"))
    estate.without("gateway")
    estate.recreate("gateway address 1", {"zones": None})
    with pytest.raises(RefusalError, match="VmssVpnGatewayPublicIpsMustHaveZonesConfigured"):
        estate.create_again("gateway")


def test_an_endpoint_has_one_group_of_zones(api: Any) -> None:
    """pulumi/pulumi-azure-native 2179."""
    with pytest.raises(RefusalError, match="has a DNS zone group"):
        Estate(api("azure")).twin("zone group", "second")
