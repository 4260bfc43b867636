"""Managed disks and disk encryption sets. Figures from "Azure managed disk types"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster import catalogue
from cluster.spec import Cloud
from sandbox.simcloud.azure.common import find, plain_outputs, under_group
from sandbox.simcloud.azure.grants import USE_KEY, may
from sandbox.simcloud.azure.identities import HAS_IDENTITIES, identities_match, identity, principals
from sandbox.simcloud.azure.key_vault import VAULT, is_purge_protected, key_at, vault_at
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Naming, Place, Reason, Reference, RefusalError, ResourceType, Saying
from sandbox.simcloud.values import Properties, at

DISK = "azure-native:compute:Disk"
ENCRYPTION_SET = "azure-native:compute:DiskEncryptionSet"

KINDS = {
    "PremiumV2_LRS": "premium_ssd_v2",
    "UltraSSD_LRS": "ultra_ssd",
    "Premium_LRS": "premium_ssd",
    "StandardSSD_LRS": "standard_ssd",
    "Standard_LRS": "standard_hdd",
}
"""SKU -> kind in the catalogue."""

ZONAL = ("PremiumV2_LRS", "UltraSSD_LRS")
"""SKUs that need a zone in most regions with zones, and that have configurable performance."""

# "Deploy a Premium SSD v2 managed disk", regional availability (June 2026): regions with zones where it may have none.
_NONZONAL = frozenset(
    (
        *("australiaeast", "brazilsouth", "eastasia", "francecentral", "germanywestcentral", "italynorth"),
        *("koreacentral", "mexicocentral", "newzealandnorth", "norwayeast", "polandcentral", "spaincentral"),
        *("southafricanorth", "southeastasia", "swedencentral", "switzerlandnorth"),
    )
)
# Maximum IOPS by size, and throughput in MB/s per IOPS.
_PER_GIB = {"PremiumV2_LRS": 500, "UltraSSD_LRS": 1000}
_LEAST = {"PremiumV2_LRS": 3000, "UltraSSD_LRS": 100}
_MB_PER_OPERATION = 0.25
_LEAST_MB = {"PremiumV2_LRS": 125, "UltraSSD_LRS": 1}

_NAME = re.compile(r"[a-zA-Z0-9]([\w.-]*\w)?")
_NAME_WORDS = "It may have letters, digits, '.', '_' and '-'."
_RSA_SIZES = (2048, 3072, 4096)


def disk_places(call: Call) -> Iterable[Place]:
    return [Place("azure", call.region, str(zone)) for zone in at(call.inputs, "zones[]")]


def _is_in_a_zone(call: Call) -> None:
    zones = list(at(call.inputs, "zones[]"))
    offered_zones = call.offers.zones("azure", call.region)
    sku = call.text("sku.name")
    if len(zones) > 1 or (sku.endswith("_ZRS") and zones):
        raise refused(BAD_REQUEST, f"Disk {call.id} has the zones {', '.join(zones)}; it can be in one.", "choose one")
    is_free = sku == "PremiumV2_LRS" and call.region in _NONZONAL
    if sku in ZONAL and offered_zones and not zones and not is_free:
        raise refused(
            BAD_REQUEST,
            f"Disk {call.id} of account type {sku} must be in an availability zone of {call.region}.",
            f"set zones to one of {', '.join(offered_zones)}",
        )


def _is_possible(call: Call) -> None:
    sku = call.text("sku.name") or "Standard_LRS"
    kind = catalogue.of(Cloud.AZURE).disks.get(KINDS.get(sku.replace("_ZRS", "_LRS"), ""))
    if kind is None:
        raise refused("InvalidAccountType", f"The AccountType {sku} is invalid.", f"one of {', '.join(KINDS)}")
    gib = int(call.inputs.get("diskSizeGB") or 0)
    if kind.max_gib is not None and gib > kind.max_gib:
        raise refused(
            "InvalidParameter",
            f"The value {gib} of parameter disk.diskSizeGB is out of range.",
            f"at most {kind.max_gib}",
        )
    for name in ("diskIOPSReadWrite", "diskMBpsReadWrite"):
        if call.inputs.get(name) is not None and sku not in ZONAL:
            raise refused(
                BAD_REQUEST,
                f"{name} of disk {call.id} can be set for the account types {' and '.join(ZONAL)} only.",
                f"its account type is {sku}; leave it out",
            )
    if sku in ZONAL:
        _performs(call, sku, gib, int(kind.max_iops or 0), int(kind.max_mb_per_s or 0))


def _performs(call: Call, sku: str, gib: int, most_iops: int, most_mb: int) -> None:
    most = min(most_iops, max(_LEAST[sku], _PER_GIB[sku] * gib))
    iops = int(call.inputs.get("diskIOPSReadWrite") or _LEAST[sku])
    if not _LEAST[sku] <= iops <= most:
        raise refused(
            "InvalidParameter",
            f"The value {iops} of parameter disk.diskIOPSReadWrite is out of range.",
            f"{_LEAST[sku]} to {most} with {gib} GiB",
        )
    mb = int(call.inputs.get("diskMBpsReadWrite") or _LEAST_MB[sku])
    allowed = int(min(most_mb, max(_LEAST_MB[sku], _MB_PER_OPERATION * iops)))
    if not _LEAST_MB[sku] <= mb <= allowed:
        raise refused(
            "InvalidParameter",
            f"The value {mb} of parameter disk.diskMBpsReadWrite is out of range.",
            f"{_LEAST_MB[sku]} to {allowed} with {iops} operations a second",
        )


def _does_not_shrink(call: Call) -> None:
    before = int(call.old.inputs.get("diskSizeGB") or 0) if call.old else 0
    after = int(call.inputs.get("diskSizeGB") or 0)
    if after < before:
        raise refused(
            "ResizeDiskError",
            f"Disk size reduction is not supported. Current size is {before << 30} bytes, requested size is {after << 30} "
            "bytes.",
            "create another disk and copy the data",
        )


def encrypts(call: Call, sku: str, set_id: str) -> None:
    """Check the disk's encryption set.

    "Server-side encryption of Azure Disk Storage": these disks accept a set with a user assigned identity only in a
    preview, and a disk is created only when its set may use the key.
    """
    chosen = find(call, (ENCRYPTION_SET,), set_id)
    kind = next(at(chosen.inputs, "identity.type"), "") if chosen else ""
    if sku in ZONAL and "UserAssigned" in kind:
        raise refused(
            "DirectDriveDiskNotSupportUserAssignedIdentityDes",
            f"Disk of account type {sku} cannot use disk encryption set {set_id}: it has a user assigned identity.",
            "make the set with the identity SystemAssigned",
        )
    if chosen is not None:
        uri, shown = _key_url(chosen.inputs), chosen.outputs.get("identity") or {}
        if not granted(call, shown, principals(chosen), uri):
            raise _forbidden(uri, chosen.id)


def granted(call: Call, shown: Properties, own: Iterable[str], uri: str) -> bool:
    """Whether one of an identity's principals may use the key at `uri`.

    own: principals in addition to the user assigned ones in `shown`.
    """
    vault = vault_at(call, uri)
    all_principals = [*own, *(user["principalId"] for user in (shown.get("userAssignedIdentities") or {}).values())]
    if vault is None:
        return False
    if next(at(vault.inputs, "properties.enableRbacAuthorization"), False):
        key = key_at(call, uri)
        return any(may(call, principal, key.id if key else vault.id, USE_KEY) for principal in all_principals)
    return any(principal in at(vault.inputs, "properties.accessPolicies[].objectId") for principal in all_principals)


def _forbidden(uri: str, holder: str) -> RefusalError:
    return refused(
        "KeyVaultAccessForbidden",
        f"Unable to access key vault resource '{uri}' to enable encryption at rest. Please grant get, wrap and unwrap key "
        f"permissions to disk encryption set '{holder}'. Please visit https://aka.ms/keyvaultaccessssecmk for more "
        "information.",
        "assign its identity the role Key Vault Crypto Service Encryption User first",
    )


def _disk_encryption(call: Call) -> None:
    chosen = call.text("encryption.diskEncryptionSetId")
    if chosen:
        encrypts(call, call.text("sku.name"), chosen)


def _key_url(inputs: Properties) -> str:
    return str(next(at(inputs, "activeKey.keyUrl"), ""))


def _has_usable_key(call: Call) -> None:
    uri = _key_url(call.inputs)
    key, vault = key_at(call, uri), vault_at(call, uri)
    if key is None or vault is None:
        raise refused(
            "KeyVaultKeyNotFound", f"The key {uri} of {call.id} was not found.", "activeKey.keyUrl is a key's URI", 404
        )
    if len(uri.rstrip("/").split("/")) < 6:
        raise refused(
            "InvalidParameter",
            f"The value {uri} of parameter activeKey.keyUrl is invalid: it has no version.",
            "use the key's keyUriWithVersion",
        )
    if vault.region != call.region:
        raise refused(
            BAD_REQUEST, f"Key vault {vault.id} is in {vault.region}, and {call.id} in {call.region}.", "use one region"
        )
    if not is_purge_protected(vault):
        raise refused(
            BAD_REQUEST,
            f"Key vault {vault.id} must have purge protection for {call.id} to use its keys.",
            "set properties.enablePurgeProtection of the vault",
        )
    if not str(key.outputs["kty"]).startswith("RSA") or key.outputs.get("keySize") not in _RSA_SIZES:
        raise refused(BAD_REQUEST, f"Key {uri} is not an RSA key of 2048, 3072 or 4096 bits.", "create one")
    if "SystemAssigned" not in call.text("identity.type") and not granted(call, identity(call) or {}, (), uri):
        raise _forbidden(uri, call.id)


_disk = ResourceType(
    token=DISK,
    noun="Disk",
    identify=under_group("Microsoft.Compute/disks"),
    outputs=plain_outputs(
        "Microsoft.Compute/disks",
        provisioningState=lambda _: "Succeeded",
        uniqueId=lambda call: guid(f"{call.id} unique"),
        timeCreated=lambda _: "2026-01-01T00:00:00+00:00",
        diskSizeBytes=lambda call: int(call.inputs.get("diskSizeGB") or 0) << 30,
    ),
    naming=Naming("diskName", _NAME, 80, _NAME_WORDS),
    where=("location",),
    replace_on=("resourceGroupName", "diskName"),
    fixed=("zones", "creationData", "extendedLocation"),
    references=(IN_GROUP, Reference("encryption.diskEncryptionSetId", (ENCRYPTION_SET,))),
    refuse=(offered(disk_places), _is_in_a_zone, _is_possible, _does_not_shrink, _disk_encryption),
    says={
        Reason.IN_USE: Saying(
            'Status=409 Code="OperationNotAllowed" Message="Disk {value} is attached to VM {user}."',
            "detach it first: {users}",
        )
    },
)

_encryption_set = ResourceType(
    token=ENCRYPTION_SET,
    noun="DiskEncryptionSet",
    identify=under_group("Microsoft.Compute/diskEncryptionSets"),
    outputs=plain_outputs(
        "Microsoft.Compute/diskEncryptionSets", provisioningState=lambda _: "Succeeded", identity=identity
    ),
    naming=Naming("diskEncryptionSetName", _NAME, 80, _NAME_WORDS),
    where=("location",),
    replace_on=("resourceGroupName", "diskEncryptionSetName"),
    references=(IN_GROUP, HAS_IDENTITIES, Reference("activeKey.sourceVault.id", (VAULT,), holds=False)),
    refuse=(identities_match, _has_usable_key),
    says={
        Reason.IN_USE: Saying(
            'Status=409 Code="OperationNotAllowed" Message="Disk encryption set {value} cannot be deleted: it is in use '
            'by {user}."',
            "delete first: {users}",
        )
    },
)

TYPES = (_disk, _encryption_set)
