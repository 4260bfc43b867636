"""Storage accounts and their containers."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.addresses import SUBNET
from sandbox.simcloud.azure.common import find, group_id, plain_outputs, section, under_group
from sandbox.simcloud.azure.disks import granted
from sandbox.simcloud.azure.identities import HAS_IDENTITIES, identities_match, identity
from sandbox.simcloud.azure.key_vault import is_purge_protected, vault_at
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

ACCOUNT = "azure-native:storage:StorageAccount"
CONTAINER = "azure-native:storage:BlobContainer"
SERVICE = "azure-native:storage:BlobServiceProperties"
POLICY = "azure-native:storage:ManagementPolicy"
IMMUTABILITY = "azure-native:storage:BlobContainerImmutabilityPolicy"

_ENDPOINTS = ("blob", "dfs", "file", "queue", "table", "web")
_LONGEST_IMMUTABILITY = 146000
_LONGEST_RETENTION = 365


def account_id(call: Call, name: str) -> str:
    """Return the ID of a storage account in the call's resource group."""
    return f"{group_id(call, call.text('resourceGroupName'))}/providers/Microsoft.Storage/storageAccounts/{name}"


def _container_id(call: Call, name: str) -> str:
    return f"{account_id(call, call.text('accountName'))}/blobServices/default/containers/{name}"


_IN_ACCOUNT = Reference("accountName", (ACCOUNT,), holds=False, local=False, resolve=account_id)


def _endpoints(call: Call) -> Properties:
    return {kind: f"https://{call.name}.{kind}.core.windows.net/" for kind in _ENDPOINTS}


def _is_globally_unique(call: Call) -> None:
    if len(call.name) < 3:
        raise call.refusal(Reason.BAD_NAME, length=str(len(call.name)), property="accountName")
    for other in call.world.of_type(ACCOUNT):
        if call.old is None and other.inputs["accountName"] == call.name:
            raise refused(
                "StorageAccountAlreadyTaken",
                f"The storage account named {call.name} is already taken.",
                f"choose another name; {other} has it",
                409,
            )


def _key_is_usable(call: Call) -> None:
    given = section(call, "encryption")
    if given.get("keySource") != "Microsoft.Keyvault":
        return
    uri, key = next(at(given, "keyVaultProperties.keyVaultUri"), ""), next(at(given, "keyVaultProperties.keyName"), "")
    vault = vault_at(call, str(uri).rstrip("/") + "/")
    user = str(next(at(given, "encryptionIdentity.encryptionUserAssignedIdentity"), ""))
    if vault is None:
        raise refused(
            "KeyVaultNotFound", f"The key vault {uri} of {call.id} was not found.", "set keyVaultUri to a vault's URI"
        )
    if not is_purge_protected(vault):
        raise refused(
            "KeyVaultPolicyError",
            "Keyvault policy recoverable is not set.",
            "set properties.enablePurgeProtection of the vault",
            409,
        )
    shown = identity(call) or {}
    if user and user not in (shown.get("userAssignedIdentities") or {}):
        raise refused(
            BAD_REQUEST, f"Identity {user} encrypts {call.id} and is not one of its identities.", "add it to identity"
        )
    if user and not granted(call, shown, (), f"{str(uri).rstrip('/')}/keys/{key}"):
        raise refused(
            "KeyVaultAuthenticationFailure",
            "The operation failed because of authentication issue on the keyvault.",
            f"{user} may not use key {key}: assign it the role Key Vault Crypto Service Encryption User first",
            409,
        )


def _container_is_immutable(call: Call) -> None:
    service = _service(call)
    is_requested = next(at(call.inputs, "immutableStorageWithVersioning.enabled"), False)
    if is_requested and not (service and service.inputs.get("isVersioningEnabled")):
        raise refused(
            BAD_REQUEST,
            f"Container {call.name} wants version-level immutability, and its account has no versions.",
            "set isVersioningEnabled of BlobServiceProperties, and create the container after it",
        )
    public = call.text("publicAccess")
    account = call.target("accountName")
    if public not in ("", "None") and account and not account.inputs.get("allowBlobPublicAccess"):
        raise refused(
            "PublicAccessNotPermitted",
            "Public access is not permitted on this storage account.",
            "leave out publicAccess",
            409,
        )


def _service(call: Call) -> Record | None:
    return find(call, (SERVICE,), f"{account_id(call, call.text('accountName'))}/blobServices/default")


def _service_is_possible(call: Call) -> None:
    for path in ("deleteRetentionPolicy", "containerDeleteRetentionPolicy", "restorePolicy"):
        policy = section(call, path)
        if policy.get("enabled") and not 1 <= int(policy.get("days") or 0) <= _LONGEST_RETENTION:
            raise refused(
                "InvalidXmlNodeValue", f"{path}.days is {policy.get('days')}.", f"1 to {_LONGEST_RETENTION} days"
            )
    restore, deleted = section(call, "restorePolicy"), section(call, "deleteRetentionPolicy")
    if not restore.get("enabled"):
        return
    has_feeds = call.inputs.get("isVersioningEnabled") and next(at(call.inputs, "changeFeed.enabled"), False)
    if not (has_feeds and deleted.get("enabled") and int(deleted.get("days") or 0) > int(restore.get("days") or 0)):
        raise refused(
            BAD_REQUEST,
            "Point-in-time restore needs versions, the change feed, and deleted blobs kept for longer than it.",
            "set isVersioningEnabled, changeFeed.enabled and deleteRetentionPolicy.days",
        )


def _named(property_: str) -> Naming:
    return Naming(f"{property_}", re.compile("default"), 7, "The name must be 'default'.")


def _rules_are_apart(call: Call) -> None:
    names = [str(rule.get("name")) for rule in at(call.inputs, "policy.rules[]")]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        raise refused(
            "InvalidRequestPropertyValue",
            f"The management policy has {twice[0] if twice else 'no rule'}.",
            "name each once",
        )


def _period_is_possible(call: Call) -> None:
    days = call.inputs.get("immutabilityPeriodSinceCreationInDays")
    if days is not None and not 1 <= int(days) <= _LONGEST_IMMUTABILITY:
        raise refused(
            "InvalidXmlNodeValue",
            f"immutabilityPeriodSinceCreationInDays is {days}.",
            f"1 to {_LONGEST_IMMUTABILITY} days",
        )
    if call.inputs.get("allowProtectedAppendWrites") and call.inputs.get("allowProtectedAppendWritesAll"):
        raise refused(
            BAD_REQUEST, "allowProtectedAppendWrites and allowProtectedAppendWritesAll exclude each other.", "set one"
        )


_account = ResourceType(
    token=ACCOUNT,
    noun="Storage account",
    identify=under_group("Microsoft.Storage/storageAccounts"),
    outputs=plain_outputs(
        "Microsoft.Storage/storageAccounts",
        provisioningState=lambda _: "Succeeded",
        primaryEndpoints=_endpoints,
        primaryLocation=lambda call: call.region,
        statusOfPrimary=lambda _: "available",
        creationTime=lambda _: "2026-01-01T00:00:00.0000000Z",
        identity=identity,
    ),
    naming=Naming("accountName", re.compile(r"[a-z0-9]+"), 24, ""),
    where=("location",),
    # From the provider's own table of properties that force a replacement, plus the names.
    replace_on=("resourceGroupName", "accountName", "isHnsEnabled"),
    fixed=(
        "enableNfsV3",
        "dnsEndpointType",
        "immutableStorageWithVersioning",
        "encryption.requireInfrastructureEncryption",
    ),
    references=(
        IN_GROUP,
        HAS_IDENTITIES,
        Reference("networkRuleSet.virtualNetworkRules[].virtualNetworkResourceId", (SUBNET,), holds=False, local=False),
    ),
    refuse=(_is_globally_unique, identities_match, _key_is_usable),
    says={
        Reason.BAD_NAME: Saying(
            'Code="AccountNameInvalid" Message="{name} is not a valid storage account name. Storage account name must be '
            'between 3 and 24 characters in length and use numbers and lower-case letters only."',
            "it has {length} characters; set {property}",
        )
    },
)

_container = ResourceType(
    token=CONTAINER,
    noun="Container",
    identify=lambda call: _container_id(call, call.name),
    outputs=plain_outputs("Microsoft.Storage/storageAccounts/blobServices/containers"),
    naming=Naming(
        "containerName",
        re.compile(r"(?=.{3})(?!.*--)[a-z0-9]([a-z0-9-]*[a-z0-9])?"),
        63,
        "It has 3 characters at least, of lower-case letters, digits and hyphens, no two of them together.",
    ),
    replace_on=("resourceGroupName", "accountName", "containerName"),
    fixed=("immutableStorageWithVersioning", "defaultEncryptionScope", "denyEncryptionScopeOverride"),
    recomputed=("etag",),
    references=(_IN_ACCOUNT,),
    refuse=(_container_is_immutable,),
)

_blob_service = ResourceType(
    token=SERVICE,
    noun="Blob service",
    identify=lambda call: f"{account_id(call, call.text('accountName'))}/blobServices/{call.name}",
    outputs=plain_outputs("Microsoft.Storage/storageAccounts/blobServices"),
    naming=_named("blobServicesName"),
    replace_on=("resourceGroupName", "accountName", "blobServicesName"),
    references=(_IN_ACCOUNT,),
    refuse=(_service_is_possible,),
    # Every account has one; the provider overwrites its defaults.
    upserts=True,
)

_management_policy = ResourceType(
    token=POLICY,
    noun="Management policy",
    identify=lambda call: f"{account_id(call, call.text('accountName'))}/managementPolicies/{call.name}",
    outputs=plain_outputs("Microsoft.Storage/storageAccounts/managementPolicies"),
    naming=_named("managementPolicyName"),
    replace_on=("resourceGroupName", "accountName", "managementPolicyName"),
    references=(_IN_ACCOUNT,),
    refuse=(_rules_are_apart,),
)

_immutability = ResourceType(
    token=IMMUTABILITY,
    noun="Immutability policy",
    identify=lambda call: f"{_container_id(call, call.text('containerName'))}/immutabilityPolicies/{call.name}",
    outputs=plain_outputs(
        "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies", state=lambda _: "Unlocked"
    ),
    naming=_named("immutabilityPolicyName"),
    replace_on=("resourceGroupName", "accountName", "containerName", "immutabilityPolicyName"),
    recomputed=("etag",),
    references=(
        _IN_ACCOUNT,
        Reference("containerName", (CONTAINER,), holds=False, local=False, resolve=_container_id),
    ),
    refuse=(_period_is_possible,),
)

TYPES = (_account, _container, _blob_service, _management_policy, _immutability)
