"""What Azure refuses beside what there is already."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Offers, RefusalError
from tests.simcloud.azure_places import DATA_DISK, HOST, NET, VAULT
from tests.simcloud.azure_support import Estate

TWINS: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("a NAT gateway's address is its own", "nat", "second", {}, "PublicIPAddressInUse.*natGateways/nat"),
    (
        "a disk is one machine's",
        "machine",
        "etcd-2",
        {},
        "ConflictingUserInput.*cannot be attached as the disk is already owned by VM.*virtualMachines/etcd-1",
    ),
    (
        "an interface is one machine's",
        "machine",
        "etcd-2",
        {"storageProfile.dataDisks": []},
        "NicInUse.*virtualMachines/etcd-1",
    ),
    ("a load balancer is not Basic", "balancer", "second", {"sku": None}, "SKU Basic, which is retired"),
    ("a frontend has an address", "balancer", "second", {"frontendIPConfigurations[0].subnet": None}, "no subnet"),
    (
        "an account's name is nobody else's",
        "account",
        "apesbackups",
        {"resourceGroupName": "others"},
        "StorageAccountAlreadyTaken.*apesbackups is already taken",
    ),
    (
        "a vault's name is nobody else's in whatever case",
        "vault",
        "Apes-Vault",
        {"resourceGroupName": "others"},
        "VaultAlreadyExists.*globally unique",
    ),
    ("a role assignment's name is a GUID", "host's role", "reads", {}, "InvalidRoleAssignmentId.*must be a GUID"),
    ("a role is given once", "host's role", guid("second"), {}, "RoleAssignmentExists"),
    (
        "a role is given to somebody",
        "host's role",
        guid("second"),
        {"principalId": guid("nobody")},
        f"PrincipalNotFound.*{guid('nobody')} does not exist in the directory",
    ),
    (
        "a client id is no principal",
        "host's role",
        guid("second"),
        {"principalId": guid(f"{HOST} client")},
        "PrincipalNotFound.*not its id or clientId",
    ),
    (
        "an identity is no user",
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
        "a network has one log",
        "flow log",
        "second",
        {},
        "has a flow log already",
    ),
    (
        "a security group has no log any more",
        "flow log",
        "second",
        {"targetResourceId": f"{NET}/networkSecurityGroups/rules"},
        "NSG flow logs can no longer be created after June 30, 2025",
    ),
    (
        "a network is linked once to a zone of a name",
        "link",
        "second",
        {},
        "linked to multiple zones with overlapping namespaces",
    ),
    ("an endpoint has one group of zones", "zone group", "second", {}, "has a DNS zone group"),
    (
        "a CNAME stands alone",
        "records",
        "api",
        {"recordType": "CNAME", "aRecords": None, "cnameRecord": {"cname": "other"}},
        "a CNAME and another record of the name api exclude each other",
    ),
    ("a subnet has one gateway", "gateway", "second", {"bgpSettings": None}, "PublicIPAddressInUse"),
    (
        "ends are connected once",
        "connection",
        "second",
        {},
        "connects what another connection connects",
    ),
    (
        "a flexible scale set says its fault domains",
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
def test_azure_refuses_what_is_wrong_beside_what_there_is(
    api: Any, key: str, name: str, changes: dict[str, Any], match: str
) -> None:
    unknown = Offers(refuse=lambda place: "unknown" if place.machine == "Standard_X" else None)
    estate = Estate(api("azure", offers=unknown))
    estate.twin("group", "others")
    with pytest.raises(RefusalError, match=match):
        estate.twin(key, name, **changes)
