"""Key vaults, secrets and keys.

The provider creates secrets and keys through the Resource Manager and deletes them through the vault's own API, which
ignores locks.
"""

from __future__ import annotations

import re

from sandbox.simcloud.azure.addresses import SUBNET
from sandbox.simcloud.azure.common import TENANT, folded, group_id, plain_outputs, under_group
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

VAULT = "azure-native:keyvault:Vault"
SECRET = "azure-native:keyvault:Secret"
KEY = "azure-native:keyvault:Key"

LARGEST_SECRET = 25 * 1024
""""About Azure Key Vault secrets" gives 25k bytes; this assumes that k means 1024."""

_SIZES = {"RSA": (2048, 3072, 4096)}
_KINDS = ("RSA", "RSA-HSM", "EC", "EC-HSM")
_CURVES = ("P-256", "P-384", "P-521", "P-256K")
_RETENTION = (7, 90)


def vault_id(call: Call, name: str) -> str:
    """Return the ID of a vault in the call's resource group."""
    return f"{group_id(call, call.text('resourceGroupName'))}/providers/Microsoft.KeyVault/vaults/{name}"


_IN_VAULT = Reference("vaultName", (VAULT,), holds=False, local=False, resolve=vault_id)


def _object_id(collection: str, call: Call) -> str:
    return f"{vault_id(call, call.text('vaultName'))}/{collection}/{call.name}"


def _uri(call: Call, collection: str = "") -> str:
    base = f"https://{call.text('vaultName').lower()}.vault.azure.net/"
    return f"{base}{collection}/{call.name}" if collection else base


def vault_at(call: Call, uri: str) -> Record | None:
    """Return the vault that a URI of the vault, or of something in it, belongs to."""
    return next(
        (vault for vault in call.world.of_type(VAULT) if uri.lower().startswith(_vault_uri(vault).lower())), None
    )


def key_at(call: Call, uri: str) -> Record | None:
    """Return the key that a URI belongs to, with or without its version."""
    plain = "/".join(uri.split("/")[:5]).lower()
    return next((key for key in call.world.of_type(KEY) if str(key.outputs["keyUri"]).lower() == plain), None)


def is_purge_protected(vault: Record) -> bool:
    """Whether the vault cannot be purged. Everything that encrypts with its keys requires this."""
    return next(at(vault.inputs, "properties.enablePurgeProtection"), False) is True


def _vault_uri(vault: Record) -> str:
    return str(vault.outputs["properties"]["vaultUri"])


def _properties(call: Call) -> Properties:
    given = call.inputs.get("properties") or {}
    return {
        "enableSoftDelete": True,
        "softDeleteRetentionInDays": 90,
        "publicNetworkAccess": "Enabled",
        "provisioningState": "Succeeded",
        **given,
        "vaultUri": _uri(call),
    }


def _name_is_whole(call: Call) -> None:
    if len(call.name) < 3:
        raise call.refusal(Reason.BAD_NAME, length=str(len(call.name)), property="vaultName")


def _is_globally_unique(call: Call) -> None:
    """Check that the name is globally unique and is not the name of a deleted vault.

    A name stays taken while a deleted vault can be recovered ("Azure Key Vault soft-delete").
    """
    if call.old is not None:
        return
    others = [other for other in call.world.of_type(VAULT) if folded(other.inputs["vaultName"]) == folded(call.name)]
    if others:
        raise refused(
            "VaultAlreadyExists",
            f"The vault name '{call.name}' is already in use. Vault names are globally unique so it is possible that the "
            "name is already taken.",
            f"choose another; {others[0]} has it",
            409,
        )
    if not call.world.is_fresh(call.id) and call.text("properties.createMode") != "recover":
        raise refused(
            "ConflictError",
            "A vault with the same name already exists in deleted state. You need to either recover or purge existing key "
            "vault.",
            f"choose another name, set createMode to recover, or `az keyvault purge --name {call.name}` (not with purge "
            "protection: then the name is free when its retention is over)",
            409,
        )


def _keeps_its_protection(call: Call) -> None:
    given = call.inputs.get("properties") or {}
    if given.get("enablePurgeProtection") is False:
        raise refused(
            BAD_REQUEST,
            'The property "enablePurgeProtection" cannot be set to false. Enabling the purge protection for a vault is an '
            "irreversible action.",
            "leave it out, or set it to true",
        )
    if given.get("enableSoftDelete") is False:
        raise refused(BAD_REQUEST, 'The property "enableSoftDelete" cannot be set to false.', "leave it out")
    if call.old is not None and is_purge_protected(call.old) and not given.get("enablePurgeProtection"):
        raise refused(
            BAD_REQUEST, 'The property "enablePurgeProtection" cannot be unset once it is true.', "set it to true"
        )


def _keeps_its_retention(call: Call) -> None:
    path = "properties.softDeleteRetentionInDays"
    days = next(at(call.inputs, path), None)
    if days is not None and not _RETENTION[0] <= int(days) <= _RETENTION[1]:
        raise refused(BAD_REQUEST, f"softDeleteRetentionInDays is {days}.", f"{_RETENTION[0]} to {_RETENTION[1]} days")
    if call.old is not None and next(at(call.old.inputs, path), None) != days:
        raise refused(
            BAD_REQUEST,
            'The property "softDeleteRetentionInDays" has been set already and it can\'t be modified.',
            "leave it as it is",
        )


def _tenant_is_ours(call: Call) -> None:
    tenant = call.text("properties.tenantId")
    if tenant != TENANT:
        raise refused(BAD_REQUEST, f"An invalid value was provided for 'tenantId': {tenant}.", f"it is {TENANT}")


def _is_not_deleted(call: Call) -> None:
    """Refuse the name of a deleted object, which stays recoverable for the vault's retention."""
    if call.old is None and not call.world.is_fresh(call.id):
        kind = call.type.noun
        raise refused(
            "Conflict",
            f"{kind} {call.name} is currently in a deleted but recoverable state, and its name cannot be reused; in this "
            f"state, the {kind.lower()} can only be recovered or purged.",
            f"`az keyvault {kind.lower()} recover` and import it, or choose another name",
            409,
        )


def _fits(call: Call) -> None:
    value = call.text("properties.value").encode()
    if len(value) > LARGEST_SECRET:
        raise refused(
            "BadParameter",
            f"The secret {call.name} is {len(value)} bytes long; a secret has {LARGEST_SECRET} at most.",
            "compress it or split it",
        )


def _secret(call: Call) -> Properties:
    given = {name: value for name, value in call.inputs["properties"].items() if name != "value"}
    version = digest(f"{call.id} {call.text('properties.value')}")[:32]
    return {
        "attributes": {"enabled": True},
        **given,
        "secretUri": _uri(call, "secrets"),
        "secretUriWithVersion": f"{_uri(call, 'secrets')}/{version}",
    }


def _key_is_possible(call: Call) -> None:
    kind, size = call.text("properties.kty"), next(at(call.inputs, "properties.keySize"), None)
    curve = call.text("properties.curveName")
    wrong = None
    if kind not in _KINDS:
        wrong = f"kty {kind or 'is missing'}; one of {', '.join(_KINDS)}"
    elif kind.startswith("RSA") and size not in (None, *_SIZES["RSA"]):
        wrong = f"keySize {size}; one of {', '.join(map(str, _SIZES['RSA']))}"
    elif kind.startswith("EC") and curve not in ("", *_CURVES):
        wrong = f"curveName {curve}; one of {', '.join(_CURVES)}"
    vault = call.target("vaultName")
    if (
        wrong is None
        and kind.endswith("-HSM")
        and vault
        and next(at(vault.inputs, "properties.sku.name"), "") != "premium"
    ):
        wrong = f"kty {kind} needs a vault of the SKU premium"
    if wrong:
        raise refused("BadParameter", f"Key {call.name}: {wrong}.", "see properties")


def _key(call: Call) -> Properties:
    """Return a key's properties.

    The Resource Manager creates a key if there is none, and otherwise returns the existing one unchanged ("Keys - Create If
    Not Exist").
    """
    names = ("kty", "keySize", "keyOps", "curveName", "attributes", "rotationPolicy", "releasePolicy")
    if call.old is not None:
        return {
            name: call.old.outputs[name] for name in (*names, "keyUri", "keyUriWithVersion") if name in call.old.outputs
        }
    given = call.inputs["properties"]
    chosen = {name: given[name] for name in names if given.get(name) is not None}
    uri = _uri(call, "keys")
    defaults = {"keySize": 2048} if str(given.get("kty")).startswith("RSA") else {}
    return {**defaults, **chosen, "keyUri": uri, "keyUriWithVersion": f"{uri}/{digest(call.id)[:32]}"}


def _key_outputs(call: Call) -> Properties:
    return {**plain_outputs("Microsoft.KeyVault/vaults/keys")(call), **_key(call)}


_vault = ResourceType(
    token=VAULT,
    noun="Vault",
    identify=under_group("Microsoft.KeyVault/vaults"),
    outputs=plain_outputs("Microsoft.KeyVault/vaults", properties=_properties),
    naming=Naming("vaultName", re.compile(r"[a-zA-Z](?!.*--)([a-zA-Z0-9-]*[a-zA-Z0-9])?"), 24, ""),
    where=("location",),
    replace_on=("resourceGroupName", "vaultName"),
    references=(IN_GROUP, Reference("properties.networkAcls.virtualNetworkRules[].id", (SUBNET,), holds=False)),
    refuse=(_name_is_whole, _is_globally_unique, _keeps_its_protection, _keeps_its_retention, _tenant_is_ours),
    says={
        Reason.BAD_NAME: Saying(
            "Code=\"VaultNameNotValid\" Message=\"The vault name '{name}' is invalid. A vault's name must be between 3-24 "
            "alphanumeric characters. The name must begin with a letter, end with a letter or digit, and not contain "
            'consecutive hyphens."',
            "it has {length} characters; set {property}",
        )
    },
)

_OBJECT_NAME = re.compile(r"[0-9a-zA-Z-]+")

_secret_type = ResourceType(
    token=SECRET,
    noun="Secret",
    identify=lambda call: _object_id("secrets", call),
    outputs=plain_outputs("Microsoft.KeyVault/vaults/secrets", properties=_secret),
    naming=Naming("secretName", _OBJECT_NAME, 127, "It may have letters, digits and hyphens."),
    replace_on=("resourceGroupName", "vaultName", "secretName"),
    references=(_IN_VAULT,),
    refuse=(_is_not_deleted, _fits),
)

_key_type = ResourceType(
    token=KEY,
    noun="Key",
    identify=lambda call: _object_id("keys", call),
    outputs=_key_outputs,
    naming=Naming("keyName", _OBJECT_NAME, 127, "It may have letters, digits and hyphens."),
    replace_on=("resourceGroupName", "vaultName", "keyName"),
    references=(_IN_VAULT,),
    refuse=(_is_not_deleted, _key_is_possible),
)

TYPES = (_vault, _secret_type, _key_type)
