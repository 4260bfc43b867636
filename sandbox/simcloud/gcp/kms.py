"""Keys of Google Cloud. Key rings and keys are never deleted: their names stay taken ("Cloud KMS resources")."""

from __future__ import annotations

import re

from sandbox.simcloud.gcp.common import bare, chosen, labelled, labels
from sandbox.simcloud.gcp.tokens import KEY, KEY_RING
from sandbox.simcloud.gcp.words import PREVENTED, conflict
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, RefusalError, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

_NAME = Naming("name", re.compile(r"[a-zA-Z0-9_-]{1,63}"), 63, "1 to 63 of letters, digits, _ and -")
_LEAST_ROTATION = 86400
_USE = "cloudkms.cryptoKeyVersions.useToEncrypt"
_USERS = ("roles/cloudkms.cryptoKeyEncrypterDecrypter", "roles/cloudkms.cryptoKeyEncrypter", "roles/owner")
_MEMBERS = (
    "gcp:kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
    "gcp:kms/keyRingIAMMember:KeyRingIAMMember",
    "gcp:projects/iAMMember:IAMMember",
)


def by_key(path: str) -> Reference:
    """Return a reference to a key or one of its versions.

    Encrypted resources do not keep their key from being destroyed: they are lost with it.
    """
    return Reference(path, (KEY,), holds=False, resolve=_key)


def _key(call: Call, text: str) -> str:
    return bare(call, text).partition("/cryptoKeyVersions/")[0]


def usable(path: str, agent: str, words: str) -> Rule:
    """Return a rule: the encrypting service may use the key at a path. agent: part of its service agent's address."""

    def rule(call: Call) -> None:
        for text in at(call.inputs, path):
            for key in call.world.find((KEY,), _key(call, str(text))):
                if not any(
                    _allows(call, record, key, agent) and call.works(record)
                    for type_ in _MEMBERS
                    for record in call.world.of_type(type_)
                ):
                    raise RefusalError(
                        f"{words.format(key=key.id, permission=_USE)}; grant {agent} of the project {_USERS[0]} on the "
                        "key first",
                        path,
                    )

    return rule


def _allows(call: Call, member: Record, key: Record, agent: str) -> bool:
    members = member.inputs.get("member") or member.inputs.get("members")
    if agent not in str(members) or not _encrypts(call, str(member.inputs["role"])):
        return False
    scopes = [target for target in member.targets if target[0] in (KEY, KEY_RING)]
    return not scopes or key.key in scopes or any(target in key.targets for target in scopes)


def _encrypts(call: Call, role: str) -> bool:
    roles = [record for record in call.world.find(("gcp:projects/iAMCustomRole:IAMCustomRole",), role)]
    return role in _USERS or any(_USE in record.inputs.get("permissions", ()) for record in roles)


def _never_again(call: Call) -> None:
    """Refuse a name that was ever used; the provider only forgets it."""
    if call.old is None and not call.world.is_fresh(call.id):
        raise call.refusal(Reason.TAKEN)


def _rotation(call: Call) -> None:
    text = call.text("rotationPeriod")
    match = re.fullmatch(r"([0-9.]*\d)s", text)
    if text and not match:
        raise conflict("rotationPeriod", f"Invalid rotation period format: {text}", "write seconds, such as 7776000s")
    if match and float(match[1]) < _LEAST_ROTATION:
        raise conflict("rotationPeriod", "Rotation period must be greater than one day", "at least 86400s")
    if text and call.text("purpose") not in ("", "ENCRYPT_DECRYPT"):
        raise conflict("rotationPeriod", "only keys for ENCRYPT_DECRYPT rotate", "leave it out")


def _key_outputs(call: Call) -> Properties:
    more = chosen(
        call,
        {
            "purpose": lambda _: "ENCRYPT_DECRYPT",
            # "CryptoKey", Cloud KMS API: 30 days.
            "destroyScheduledDuration": lambda _: "2592000s",
        },
    )
    primary = {"name": f"{call.id}/cryptoKeyVersions/1", "state": "ENABLED"}
    return {"primaries": [primary], **labels(call), **more}


_KEPT = Saying(
    "googleapi: Error 409: {noun} {id} already exists., alreadyExists",
    "it is never deleted, even if the provider forgot it: choose another name, or import it (`pulumi import {type} <name> {id}`)",
)

TYPES = (
    ResourceType(
        token=KEY_RING,
        noun="KeyRing",
        identify=lambda call: f"projects/{call.text('project')}/locations/{call.text('location')}/keyRings/{call.name}",
        naming=_NAME,
        where=("project",),
        replace_on=("name", "location"),
        refuse=(_never_again,),
        says={Reason.TAKEN: _KEPT},
    ),
    ResourceType(
        token=KEY,
        noun="CryptoKey",
        identify=lambda call: f"{call.text('keyRing')}/cryptoKeys/{call.name}",
        outputs=_key_outputs,
        naming=_NAME,
        replace_on=(
            *("keyRing", "name", "cryptoKeyBackend", "destroyScheduledDuration", "importOnly", "purpose"),
            "versionTemplate.protectionLevel",
        ),
        references=(Reference("keyRing", (KEY_RING,), holds=False),),
        refuse=(_never_again, _rotation, labelled),
        protected_by={"deletionPolicy": "PREVENT"},
        says={**PREVENTED, Reason.TAKEN: _KEPT},
    ),
)
