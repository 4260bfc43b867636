"""Inputs that Azure refuses, each with its right form. They were written without a look at simcloud's rules and tests."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import NET, RULE
from tests.simcloud.azure_support import Estate
from tests.simcloud.test_outside_azure import UPDATED

Changes = dict[str, Any]
SET_SECRET = "Microsoft.KeyVault/vaults/secrets/setSecret/action"


def _rotated(after: str) -> Changes:
    action = {"action": {"type": "rotate"}, "trigger": {"timeAfterCreate": after}}
    return {"properties.rotationPolicy": {"lifetimeActions": [action]}}


def _from(*ranges: str) -> Changes:
    one = {key: value for key, value in RULE.items() if key != "sourceAddressPrefix"}
    return {"securityRules": [{**one, "sourceAddressPrefixes": list(ranges)}]}


def _gateway(sku: str) -> Changes:
    return {"sku": {"name": sku, "tier": sku}, "vpnGatewayGeneration": "Generation2"}


def _home(name: str) -> Changes:
    return {"osProfile.linuxConfiguration.ssh.publicKeys[0].path": f"/home/{name}/.ssh/authorized_keys"}


def _acls(bypass: str) -> Changes:
    return {"properties.networkAcls": {"bypass": bypass, "defaultAction": "Deny"}}


# What, its page or report, key in the estate, wrong changes, right changes, words of the refusal.
ROWS: list[tuple[str, str, str, Changes, Changes, str]] = [
    ("a key rotated after five days", "Configure cryptographic key auto-rotation: seven days", "key",
     _rotated("P5D"), _rotated("P7D"), "use 7 days or more"),
    ("a secret's name with a dot", "About keys, secrets, and certificates: object identifiers", "secret",
     {"secretName": "ca.crt"}, {"secretName": "ca-crt"}, "letters, digits and hyphens"),
    ("a burst of a Premium SSD v2", "Managed disk bursting: Premium SSD above 512 GiB", "disk",
     {"burstingEnabled": True}, {"burstingEnabled": None}, "more than 512 GiB"),
    ("user data as plain text", "Virtual Machine Scale Sets: customData is base64", "scale set",
     {"virtualMachineProfile.osProfile.customData": "#cloud-config\nhostname: a"}, {}, "must be in Base64"),
    ("an eviction of regular machines", "Azure Spot Virtual Machines for Virtual Machine Scale Sets", "scale set",
     {"virtualMachineProfile.evictionPolicy": "Delete"},
     {"virtualMachineProfile.evictionPolicy": "Delete", "virtualMachineProfile.priority": "Spot",
      "automaticRepairsPolicy": None}, "goes with the priority Spot"),
    ("a frontend inside and outside", "Load Balancers: FrontendIPConfiguration", "balancer",
     {"frontendIPConfigurations[0].publicIPAddress": {"id": f"{NET}/publicIPAddresses/vpn-1"}}, {}, "MustHaveOneAddress"),
    ("any source among others", "Security Rules: sourceAddressPrefixes are ranges", "rules",
     _from("*", "10.0.1.0/24"), _from("10.0.2.0/24", "10.0.1.0/24"), "SecurityRuleParameterContainsUnsupportedValue"),
    ("NAT in the gateway's subnet", "Azure NAT Gateway: limitations", "gateway subnet",
     {"natGateway": {"id": f"{NET}/natGateways/nat"}}, {}, "cannot have a natGateway"),
    ("a NAT gateway in two zones", "NAT gateway and availability zones", "nat", {"zones": ["1", "2"]}, {"zones": ["1"]},
     "a NAT gateway is in one"),
    ("VpnGw1AZ of generation 2", "About VPN Gateway SKUs: by generation", "gateway",
     _gateway("VpnGw1AZ"), _gateway("VpnGw2AZ"), "VpnGw1 is of Generation1"),
    ("files on standard disks", "Storage account overview: FileStorage is premium", "account",
     {"kind": "FileStorage", "sku.name": "Standard_ZRS"}, {"kind": "FileStorage", "sku.name": "Premium_ZRS"},
     "SKU is of another kind"),
    ("a public container in a private account", "Configure anonymous read access: PublicAccessNotPermitted", "container",
     {"publicAccess": "Blob"}, {"publicAccess": "None"}, "PublicAccessNotPermitted"),
    ("a link in a region", "Virtual Network Links: location is global", "link", {"location": "westeurope"}, {},
     "LocationNotAvailable"),
    ("a principal of type ManagedIdentity", "Role Assignments: PrincipalType", "host's role",
     {"principalType": "ManagedIdentity"}, {"principalType": "ServicePrincipal"}, "UnmatchedPrincipalType"),
    ("a lock against changes, Delete", "Management Locks: LockLevel", "lock", {"level": "Delete"}, {"level": "ReadOnly"},
     "has the level Delete"),
]  # fmt: skip


def _tried(api: Any, key: str, changes: Changes) -> None:
    estate = Estate(api("azure"))
    if key == "container":
        estate.update("account", {"allowBlobPublicAccess": False})
    (estate.update if key in UPDATED else estate.recreate)(key, changes)


@pytest.mark.parametrize(
    ("key", "changes", "words"), [(*row[2:4], row[5]) for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_what_azure_refuses_is_refused(api: Any, key: str, changes: Changes, words: str) -> None:
    with pytest.raises(RefusalError, match=words):
        _tried(api, key, changes)


@pytest.mark.parametrize(("key", "changes"), [(row[2], row[4]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_right_form_is_accepted_by_azure(api: Any, key: str, changes: Changes) -> None:
    _tried(api, key, changes)
