"""Limits of Azure on the values of properties. Each group names the page of Microsoft Learn that has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, ip_address, ip_network

from sandbox.simcloud.limits import (
    Limit,
    between,
    distinct,
    has,
    longest,
    most,
    needed_if,
    one_of,
    only_if,
    shaped,
    where,
)
from sandbox.simcloud.values import Properties, Value, at

# "Resolve errors for resource name and type", "Naming rules and restrictions": host names of Linux.
_HOST = r"[^`~!@#$%^&*()=+_\[\]{}\\|;:.'\",<>/?\s]"
_DURATION = r"PT(\d+H)?(\d+M)?(\d+S)?"
# "Azure resource provider operations": of the management and of data in vaults and containers.
_ACTION = r"(?i)\*(/\w+)*|[\w.]+/[\w./*-]*(read|write|delete|action|\*)"
_OF_DATA = r"Microsoft\.KeyVault/vaults/(secrets|keys|certificates)/\w+/action|Microsoft\.Storage/storageAccounts/blobServices/containers/blobs/.*"
# "Virtual Network FAQ": ranges that a virtual network cannot have.
_NOT_OF_NETWORKS = tuple(
    ip_network(text)
    for text in ("224.0.0.0/4", "255.255.255.255/32", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32")
)
# "Virtual network service endpoints".
_SERVICES = tuple(
    f"Microsoft.{name}"
    for name in (
        *("AzureActiveDirectory", "AzureCosmosDB", "CognitiveServices", "ContainerRegistry", "EventHub", "KeyVault"),
        *("ServiceBus", "Sql", "Storage", "Storage.Global", "Web"),
    )
)
_BASE_BLOB = "policy.rules[].definition.actions.baseBlob"
_TIERS = ("tierToCool", "tierToCold", "tierToArchive", "tierToHot")
_AFTER = ("daysAfterModificationGreaterThan", "daysAfterCreationGreaterThan", "daysAfterLastAccessTimeGreaterThan")


def _days(text: Value) -> int | None:
    """Return the days of a duration such as ``P90D``, ``P1Y10D`` or ``PT720H``."""
    match = re.fullmatch(r"P(?=[\dT])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(\d+)H)?", str(text))
    if match is None:
        return None
    years, months, days, hours = (int(number or 0) for number in match.groups())
    return 365 * years + 30 * months + days + hours // 24


# "Restrictions for IP network rules" (Azure Storage), "IPRule" of vaults and accounts: RFC 1918, and only IPv4.
_PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def _is_network(value: Value) -> bool:
    try:
        ip_network(str(value))
    except ValueError:
        return False
    return True


def _is_address(value: Value) -> bool:
    try:
        ip_address(str(value))
    except ValueError:
        return False
    return True


def _is_prefix(value: Value) -> bool:
    """Whether a security rule or route takes this: an address, a network, or a word that may be a service tag."""
    return _is_network(value) if str(value)[:1].isdigit() or ":" in str(value) else True


def _is_public(value: Value) -> bool:
    """Whether a firewall of a vault or account takes this: of IPv4 networks, it refuses only those in RFC 1918."""
    network = ip_network(str(value)) if _is_network(value) else None
    return isinstance(network, IPv4Network) and not any(network.subnet_of(range_) for range_ in _PRIVATE)


def _is_of_networks(value: Value) -> bool:
    return not any(range_.overlaps(ip_network(str(value))) for range_ in _NOT_OF_NETWORKS if _is_network(value))


def _generation(gateway: Properties) -> bool:
    """Whether a SKU exists in a generation ("About gateway SKUs")."""
    digit, generation = str(next(at(gateway, "sku.name"), ""))[5:6], gateway["vpnGatewayGeneration"]
    return generation in {"1": ("Generation1",), "4": ("Generation2",), "5": ("Generation2",)}.get(digit, (generation,))


def _keys_are_homes(profile: Properties) -> bool:
    """Whether keys are for the file of the administrator ("SshPublicKey")."""
    path = f"/home/{profile.get('adminUsername')}/.ssh/authorized_keys"
    return set(at(profile, "linuxConfiguration.ssh.publicKeys[].path")) <= {path}


def _same_algorithm(policy: Properties) -> bool:
    """Whether GCM is used for encryption and integrity alike ("About cryptographic requirements and Azure VPN gateways")."""
    encryption, integrity = policy.get("ipsecEncryption"), policy.get("ipsecIntegrity")
    return encryption == integrity or not any(str(name).startswith("GCM") for name in (encryption, integrity))


def _fits_kind(account: Properties) -> bool:
    """Whether a kind of account has the SKU ("Storage account overview": premium accounts; "Azure Files billing": StandardV2)."""
    sku, kind = str(next(at(account, "sku.name"), "")), account["kind"]
    if kind == "FileStorage":
        return sku.startswith(("Premium", "StandardV2"))
    return (
        sku.startswith("Premium")
        if kind == "BlockBlobStorage"
        else sku in ("", "Premium_LRS", "Premium_ZRS") or sku.startswith("Standard_")
    )


def _tiers_block_blobs(definition: Properties) -> bool:
    tiers = any(next(at(definition, f"actions.baseBlob.{tier}"), None) for tier in _TIERS)
    return not tiers or set(at(definition, "filters.blobTypes[]")) <= {"blockBlob"}


def _is_apart(prefixes: Value) -> bool:
    ranges = [ip_network(str(text)) for text in prefixes if _is_network(text)]
    return not any(one.overlaps(other) for i, one in enumerate(ranges) for other in ranges[:i])


def _spreads(scale_set: Properties) -> bool:
    """Whether a uniform scale set in zones has the number of fault domains that it may have ("Fault domains")."""
    return (
        scale_set.get("orchestrationMode") == "Flexible"
        or not scale_set.get("zones")
        or scale_set["platformFaultDomainCount"] in (1, 5)
    )


def _one_primary(interface: Properties) -> bool:
    rows = list(at(interface, "ipConfigurations[]"))
    return len(rows) < 2 or [bool(row.get("primary")) for row in rows].count(True) == 1


def _of_machine(path: str = "") -> tuple[Limit, ...]:
    """Return the limits that machines and scale sets share. path: of the machine's profile, with its dot."""
    return (
        only_if(
            f"{path}osProfile.adminUsername", _keys_are_homes, "keys are for /home/<adminUsername>/.ssh/authorized_keys"
        ),
        # "Detailed steps: Create and manage SSH keys".
        shaped(
            f"{path}osProfile.linuxConfiguration.ssh.publicKeys[].keyData",
            r"(ssh-rsa|ssh-ed25519) \S+.*",
            "give a public key of the type ssh-rsa or ssh-ed25519",
        ),
        shaped(
            f"{path}storageProfile.imageReference.version",
            r"latest|\d+\.\d+\.\d+",
            "use latest or such as 24.4.202601010",
        ),
        between(f"{path}storageProfile.dataDisks[].lun", 0, 63),
        needed_if(
            f"{path}storageProfile.dataDisks[].managedDisk", has("createOption", "Attach"), "name the disk to attach"
        ),
        where(f"{path}storageProfile.osDisk.createOption", lambda option: option != "Empty", "use FromImage or Attach"),
        shaped(
            f"{path}diagnosticsProfile.bootDiagnostics.storageUri",
            r"https://.+",
            "write https://<account>.blob.core.windows.net/, or nothing",
        ),
        # "Introduction to Azure managed disks": OS disk.
        between(f"{path}storageProfile.osDisk.diskSizeGB", 1, 4095),
        # "Ephemeral OS disks".
        only_if(
            f"{path}storageProfile.osDisk.diffDiskSettings",
            has("caching", "ReadOnly"),
            "ephemeral disks have caching ReadOnly",
        ),
        # "Use Azure Spot Virtual Machines": -1 for the price of regular machines.
        where(
            f"{path}billingProfile.maxPrice",
            lambda price: price == -1 or float(price) > 0,
            "use -1, or a price above 0",
        ),
    )


LIMITS: Mapping[str, tuple[Limit, ...]] = {
    "azure-native:network:NetworkSecurityGroup": (
        longest("securityRules[].description", 140),
        *(where(f"securityRules[].{side}AddressPrefix{plural}", _is_prefix, "give an address, a network without bits of a host, or a service tag")
          for side in ("source", "destination") for plural in ("", "es[]")),
    ),
    "azure-native:network:RouteTable": (
        where("routes[].addressPrefix", _is_prefix, "give a network without bits of a host, or a service tag"),
    ),
    "azure-native:network:VirtualNetwork": (
        where("addressSpace.addressPrefixes[]", _is_of_networks, f"it overlaps one of {', '.join(map(str, _NOT_OF_NETWORKS))}"),
        where("addressSpace.addressPrefixes", _is_apart, "its ranges overlap"),
        where("dhcpOptions.dnsServers[]", _is_address, "give addresses"),
        between("flowTimeoutInMinutes", 4, 30),
    ),
    "azure-native:network:Subnet": (one_of("serviceEndpoints[].service", *_SERVICES),),
    # "Public IP addresses", "Default outbound idle timeout".
    "azure-native:network:PublicIPAddress": (
        between("idleTimeoutInMinutes", 4, 30),
        shaped("dnsSettings.domainNameLabel", r"[a-z][a-z0-9-]{1,61}[a-z0-9]", "use 3 to 63 of a-z, 0-9 and hyphens, a letter first"),
    ),
    "azure-native:network:NatGateway": (between("idleTimeoutInMinutes", 4, 120),),
    "azure-native:network:NetworkInterface": (
        distinct("ipConfigurations[].name"),
        where("dnsSettings.dnsServers[]", lambda text: text == "AzureProvidedDNS" or _is_address(text), "give addresses, or AzureProvidedDNS"),
        only_if("ipConfigurations", _one_primary, "exactly one of several is primary"),
    ),
    # "Azure Load Balancer TCP reset and idle timeout", "LoadBalancingRule".
    "azure-native:network:LoadBalancer": (
        between("loadBalancingRules[].idleTimeoutInMinutes", 4, 100),
        between("loadBalancingRules[].frontendPort", 0, 65534),
        between("loadBalancingRules[].backendPort", 0, 65535),
        between("probes[].port", 1, 65535),
    ),
    # "Private endpoint DNS integration": zones of a group.
    "azure-native:network:PrivateDnsZoneGroup": (most("privateDnsZoneConfigs", 5),),
    "azure-native:network:PrivateEndpoint": (
        most("privateLinkServiceConnections", 1),
        only_if("manualPrivateLinkServiceConnections", lambda given: not given.get("privateLinkServiceConnections"),
                "an endpoint has one connection, approved automatically or by hand"),
    ),
    # "DNS zones and records overview", "Azure DNS limits".
    "azure-native:privatedns:PrivateRecordSet": (
        between("ttl", 1, 2147483647),
        most("aRecords", 20),
        only_if("cnameRecord", lambda given: given.get("relativeRecordSetName") != "@", "the apex of a zone has no CNAME"),
    ),
    # "Flow logs for virtual networks", "RetentionPolicyParameters".
    "azure-native:network:FlowLog": (
        between("retentionPolicy.days", 0, 365),
        one_of("format.version", 1, 2),
        one_of("flowAnalyticsConfiguration.networkWatcherFlowAnalyticsConfiguration.trafficAnalyticsInterval", 10, 60),
    ),
    "azure-native:network:VirtualNetworkGateway": (
        distinct("ipConfigurations[].publicIPAddress.id"),
        only_if("vpnGatewayGeneration", _generation, "VpnGw1 is of Generation1, VpnGw4 and VpnGw5 of Generation2"),
    ),
    "azure-native:network:LocalNetworkGateway": (
        where("localNetworkAddressSpace.addressPrefixes[]", _is_network, "give networks without bits of a host"),
    ),
    # "About cryptographic requirements and Azure VPN gateways", "VirtualNetworkGatewayConnection".
    "azure-native:network:VirtualNetworkGatewayConnection": (
        between("ipsecPolicies[].saLifeTimeSeconds", 300, 172799),
        between("ipsecPolicies[].saDataSizeKilobytes", 1024, 2147483647),
        only_if("ipsecPolicies[].ipsecIntegrity", _same_algorithm, "with GCM, ipsecEncryption and ipsecIntegrity are the same"),
        between("dpdTimeoutSeconds", 9, 3600),
        between("routingWeight", 0, 32000),
    ),
    # "Azure managed disk types", "Change the performance of Azure managed disks", "Share an Azure managed disk".
    "azure-native:compute:Disk": (
        only_if("tier", lambda disk: str(next(at(disk, "sku.name"), "")) in ("Premium_LRS", "Premium_ZRS"), "only Premium SSDs have a tier"),
        only_if("burstingEnabled", lambda disk: str(next(at(disk, "sku.name"), "")).startswith("Premium_") and disk.get("diskSizeGB", 0) > 512,
                "only Premium SSDs of more than 512 GiB burst on demand"),
        between("maxShares", 1, 15),
        needed_if("diskAccessId", has("networkAccessPolicy", "AllowPrivate"), "AllowPrivate needs a disk access resource"),
        needed_if("encryption.diskEncryptionSetId", lambda given: "Customer" in str(given.get("type")), "a customer's key needs an encryption set"),
        needed_if("creationData.sourceResourceId", has("createOption", "Copy", "Restore", "CopyStart"), "copies need their source"),
        one_of("creationData.logicalSectorSize", 512, 4096),
    ),
    "azure-native:compute:VirtualMachine": (
        *_of_machine(),
        shaped("osProfile.computerName", rf"(?!\d+$){_HOST}{{1,64}}", "use up to 64 letters, digits and hyphens, not only digits"),
        only_if("availabilitySet", lambda machine: not machine.get("zones"), "a machine has a zone or an availability set"),
    ),
    # "Automatic instance repairs", "RollingUpgradePolicy".
    "azure-native:compute:VirtualMachineScaleSet": (
        *_of_machine("virtualMachineProfile."),
        between("sku.capacity", 0, 1000),
        one_of("sku.tier", "Standard", "Basic"),
        only_if("platformFaultDomainCount", _spreads, "in zones it is 1, or 5"),
        shaped("virtualMachineProfile.osProfile.computerNamePrefix", rf"(?!\d+$){_HOST}{{1,58}}", "use up to 58 letters, digits and hyphens"),
        shaped("automaticRepairsPolicy.gracePeriod", r"PT([1-8]\d|90)M|PT1H([0-2]?\d|30)?M?", "use PT10M to PT90M"),
        shaped("upgradePolicy.rollingUpgradePolicy.pauseTimeBetweenBatches", _DURATION, "use a duration such as PT30S"),
        only_if(
            "platformFaultDomainCount",
            lambda given: given["platformFaultDomainCount"] == 1 or given.get("orchestrationMode") != "Flexible" or not given.get("zones"),
            "with zones, flexible scale sets have 1",
        ),
        distinct("zones[]"),
    ),
    # "Azure custom roles": limits.
    "azure-native:authorization:RoleDefinition": (
        shaped("permissions[].actions[]", _ACTION, "write an operation, such as Microsoft.Compute/virtualMachines/read"),
        shaped("permissions[].dataActions[]", _ACTION, "write an operation, such as Microsoft.KeyVault/vaults/secrets/getSecret/action"),
        where("permissions[].actions[]", lambda text: not re.fullmatch(_OF_DATA, str(text), re.IGNORECASE), "it is one of data: write it in dataActions"),
        longest("roleName", 512), longest("description", 2048), most("assignableScopes", 2000)),
    "azure-native:authorization:RoleAssignment": (
        needed_if("conditionVersion", has("condition"), "a condition needs its version, 2.0"),
        one_of("conditionVersion", "2.0"),
    ),
    "azure-native:authorization:ManagementLockByScope": (longest("notes", 512),),
    # "Configure network security for Azure Key Vault", "Azure Storage firewall rules".
    "azure-native:keyvault:Vault": (where("properties.networkAcls.ipRules[].value", _is_public, "private addresses are not allowed, and only IPv4 is"),),
    # "Configure cryptographic key auto-rotation in Azure Key Vault", "About keys", "About Azure Key Vault secrets".
    "azure-native:keyvault:Key": (
        where("properties.rotationPolicy.attributes.expiryTime", lambda text: (_days(text) or 0) >= 28, "use 28 days or more, such as P2Y"),
        where("properties.rotationPolicy.lifetimeActions[].trigger.timeAfterCreate", lambda text: (_days(text) or 0) >= 7,
              "use 7 days or more, such as P90D"),
        where("properties.rotationPolicy.lifetimeActions[].trigger.timeBeforeExpiry", lambda text: (_days(text) or 0) >= 7,
              "use 7 days or more, such as P30D"),
        only_if("properties.rotationPolicy.lifetimeActions", lambda given: not list(at(given, "lifetimeActions[].trigger.timeBeforeExpiry"))
                or list(at(given, "attributes.expiryTime")), "timeBeforeExpiry needs attributes.expiryTime"),
        only_if("properties.keySize", lambda key: str(key.get("kty")).startswith("RSA"), "only RSA keys have a size"),
        only_if("properties.curveName", lambda key: str(key.get("kty")).startswith("EC"), "only EC keys have a curve"),
    ),
    "azure-native:keyvault:Secret": (longest("properties.contentType", 255),),
    "azure-native:storage:StorageAccount": (
        only_if("kind", _fits_kind, "the SKU is of another kind of account"),
        # "NFS 3.0 protocol support for Azure Blob Storage".
        only_if("enableNfsV3", has("isHnsEnabled", True), "NFS 3.0 needs a hierarchical namespace: set isHnsEnabled"),
        where("networkRuleSet.ipRules[].iPAddressOrRange", _is_public, "private addresses are not allowed, and only IPv4 is"),
        shaped("networkRuleSet.ipRules[].iPAddressOrRange", r"[^/]+(/(?!31|32)\d+)?", "write one or two addresses without a prefix"),
    ),
    # "Lifecycle management policies that transition blobs between tiers".
    "azure-native:storage:ManagementPolicy": (
        shaped("policy.rules[].name", r"[\w-]{1,256}", "use up to 256 letters and digits"),
        needed_if("policy.rules[].definition.actions", lambda _: True, "a rule needs an action"),
        most("policy.rules[].definition.filters.prefixMatch", 10),
        one_of("policy.rules[].definition.filters.blobTypes[]", "blockBlob", "appendBlob"),
        only_if("policy.rules[].definition.actions", _tiers_block_blobs, "only block blobs change their tier"),
        *(between(f"{_BASE_BLOB}.{action}.{after}", 0, 99999) for action in ("delete", *_TIERS) for after in _AFTER),
    ),
}  # fmt: skip
