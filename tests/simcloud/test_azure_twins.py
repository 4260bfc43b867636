"""What Azure refuses because of existing resources."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Offers, RefusalError
from tests.simcloud.azure_places import DATA_DISK, HOST, NET, VAULT
from tests.simcloud.azure_support import Estate

TWINS: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("a NAT gateway's address has no other user", "nat", "second", {}, "PublicIPAddressInUse.*natGateways/nat"),
    (
        "a disk has one machine",
        "machine",
        "etcd-2",
        {},
        "ConflictingUserInput.*cannot be attached as the disk is already owned by VM.*virtualMachines/etcd-1",
    ),
    (
        "an interface has one machine",
        "machine",
        "etcd-2",
        {"storageProfile.dataDisks": []},
        "NicInUse.*virtualMachines/etcd-1",
    ),
    ("a load balancer is not Basic", "balancer", "second", {"sku": None}, "SKU Basic, which is retired"),
    ("a frontend has an address", "balancer", "second", {"frontendIPConfigurations[0].subnet": None}, "no subnet"),
    (
        "an account's name is unique",
        "account",
        "apesbackups",
        {"resourceGroupName": "others"},
        "StorageAccountAlreadyTaken.*apesbackups is already taken",
    ),
    (
        "a vault's name is unique and case-insensitive",
        "vault",
        "Apes-Vault",
        {"resourceGroupName": "others"},
        "VaultAlreadyExists.*globally unique",
    ),
    ("a role assignment's name is a GUID", "host's role", "reads", {}, "InvalidRoleAssignmentId.*must be a GUID"),
    ("a role is assigned once", "host's role", guid("second"), {}, "RoleAssignmentExists"),
    (
        "a role's principal exists",
        "host's role",
        guid("second"),
        {"principalId": guid("nobody")},
        f"PrincipalNotFound.*{guid('nobody')} does not exist in the directory",
    ),
    (
        "a client ID is not a principal ID",
        "host's role",
        guid("second"),
        {"principalId": guid(f"{HOST} client")},
        "PrincipalNotFound.*not to its ID or clientId",
    ),
    (
        "an identity is not a user",
        "host's role",
        guid("second"),
        {"principalType": "User"},
        "UnmatchedPrincipalType.*'ServicePrincipal'",
    ),
    (
        "a role's scope exists",
        "host's role",
        guid("second"),
        {"scope": f"{VAULT}-2"},
        "ResourceNotFound.*apes-vault-2",
    ),
    ("a lock's scope exists", "lock", "second", {"scope": f"{DATA_DISK}-2"}, "ResourceNotFound.*etcd-1-2"),
    (
        "a network has one flow log",
        "flow log",
        "second",
        {},
        "has a flow log already",
    ),
    (
        "a security group cannot have a new flow log",
        "flow log",
        "second",
        {"targetResourceId": f"{NET}/networkSecurityGroups/rules"},
        "NSG flow logs can no longer be created after June 30, 2025",
    ),
    (
        "a network is linked once to zones with the same name",
        "link",
        "second",
        {},
        "linked to multiple zones with overlapping namespaces",
    ),
    ("an endpoint has one zone group", "zone group", "second", {}, "has a DNS zone group"),
    (
        "a CNAME excludes other records",
        "records",
        "api",
        {"recordType": "CNAME", "aRecords": None, "cnameRecord": {"cname": "other"}},
        "a CNAME and another record of the name api exclude each other",
    ),
    ("a subnet has one gateway", "gateway", "second", {"bgpSettings": None}, "PublicIPAddressInUse"),
    (
        "the same ends are connected once",
        "connection",
        "second",
        {},
        "joins the same two gateways as another connection",
    ),
    (
        "a flexible scale set needs fault domains",
        "scale set",
        "second",
        {"orchestrationMode": "Flexible"},
        "flexible orchestration must have platformFaultDomainCount and .*networkApiVersion",
    ),
    (
        "a flexible scale set has no single group",
        "scale set",
        "second",
        {
            "orchestrationMode": "Flexible",
            "platformFaultDomainCount": 1,
            "singlePlacementGroup": True,
            "virtualMachineProfile.networkProfile.networkApiVersion": "2020-11-01",
        },
        "flexible orchestration has no single group",
    ),
    (
        "a machine is in its disk's zone",
        "machine",
        "etcd-2",
        {"zones": ["2"], "networkProfile.networkInterfaces": []},
        "not in the same zone as the VM. VM zone: '2'. Disk zone: '1'",
    ),
    (
        "an interface's subnet is in its region",
        "interface",
        "far",
        {"location": "eastus"},
        "both resources are in the same region.*it is in westeurope",
    ),
    ("a machine's size is offered", "machine", "etcd-2", {"hardwareProfile.vmSize": "Standard_X"}, "SkuNotAvailable"),
    ("a machine's zone is one of the region's", "machine", "etcd-2", {"zones": ["4"]}, "InvalidAvailabilityZone"),
    ("a link's network exists", "link", "second", {"virtualNetwork.id": f"{NET}/none"}, "NotFound.*/none'"),
]


@pytest.mark.parametrize(("key", "name", "changes", "match"), [row[1:] for row in TWINS], ids=[row[0] for row in TWINS])
def test_azure_refuses_what_conflicts_with_the_estate(
    api: Any, key: str, name: str, changes: dict[str, Any], match: str
) -> None:
    unknown = Offers(refuse=lambda place: "unknown" if place.machine == "Standard_X" else None)
    estate = Estate(api("azure", offers=unknown))
    estate.twin("group", "others")
    with pytest.raises(RefusalError, match=match):
        estate.twin(key, name, **changes)
