"""AWS Secrets Manager."""

from __future__ import annotations

import re
from dataclasses import replace

from sandbox.simcloud.aws.common import arn, refused, tags
from sandbox.simcloud.aws.documents import policy_is_json
from sandbox.simcloud.aws.keys import KEY_OF
from sandbox.simcloud.aws.tokens import SECRET
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties
from sandbox.simcloud.world import Record

# "PutSecretValue".
_LARGEST = 65536
# "DeleteSecret": 7 to 30 days, default 30.
_WINDOW = (7, 30)
_WAITING = f"{SECRET}#scheduledForDeletion"
"""Deleted secrets that AWS keeps until their recovery window ends. Their names stay taken; no state has them."""


def _id(call: Call) -> str:
    for waiting in call.world.of_type(_WAITING):
        if waiting.region == call.region and waiting.inputs.get("name") == call.name:
            raise refused(
                "InvalidRequestException",
                "You can't create this secret because a secret with this name is already scheduled for deletion.",
                f"restore {waiting.id}, choose a name other than {call.name}, or delete with recoveryWindowInDays 0",
            )
    return call.fresh(lambda digits: arn(call, "secretsmanager", f"secret:{call.name}-{digits[:6]}"))


def _window(call: Call) -> None:
    days = call.inputs.get("recoveryWindowInDays")
    if days is not None and days != 0 and not _WINDOW[0] <= days <= _WINDOW[1]:
        raise refused(
            "",
            f"expected recoveryWindowInDays to be one of [0] or in the range ({_WINDOW[0]} - {_WINDOW[1]}), "
            f"got {days:.0f}",
            "set it within",
            "recoveryWindowInDays",
        )


def _wait(call: Call) -> None:
    """Keep a deleted secret's name taken until its recovery window ends."""
    if call.old is not None and call.inputs.get("recoveryWindowInDays", _WINDOW[1]) != 0:
        call.world.put(replace(_forgotten(call.old), type=_WAITING))


def _forgotten(record: Record) -> Record:
    return replace(record, known_by=(), targets=(), uses=())


def _size(call: Call) -> None:
    for name in ("secretString", "secretBinary"):
        if len(call.text(name).encode()) > _LARGEST:
            raise refused(
                "ValidationException",
                f"1 validation error detected: Value at '{name}' failed to satisfy constraint: Member must have length "
                f"less than or equal to {_LARGEST}",
                f"it has {len(call.text(name).encode())} bytes; split it",
                name,
            )


def _one_value(call: Call) -> None:
    given = [name for name in ("secretString", "secretBinary", "secretStringWo") if call.inputs.get(name)]
    if len(given) > 1:
        raise refused("", f"{given[0]}: conflicts with {given[1]}", "give one of them", given[1])


def _version_outputs(call: Call) -> Properties:
    secret = call.target("secretId")
    its_arn = secret.outputs["arn"] if secret else ""
    return {
        "arn": its_arn,
        "secretArn": its_arn,
        "versionId": call.id.rpartition("|")[2],
        "versionStages": call.inputs.get("versionStages") or ["AWSCURRENT"],
        "hasSecretStringWo": bool(call.inputs.get("secretStringWo")),
    }


_missing = Saying(
    "api error ResourceNotFoundException: Secrets Manager can't find the specified secret.",
    "{path} names {value}, which does not exist in {region}",
)

_secret = ResourceType(
    token=SECRET,
    noun="secret",
    code="ResourceNotFoundException",
    identify=_id,
    outputs=lambda call: {"arn": call.id, **tags(call)},
    where=("region",),
    naming=Naming("name", re.compile(r"[A-Za-z0-9/_+=.@-]+"), 512, "it may have only a-z, A-Z, 0-9 and /_+=.@-", ()),
    replace_on=("name", "namePrefix", "type"),
    references=(Reference("kmsKeyId", KEY_OF, holds=False),),
    refuse=(_window, policy_is_json("policy", "MalformedPolicyDocumentException")),
    refuse_deletion=(_wait,),
    says={
        Reason.TAKEN: Saying(
            "api error ResourceExistsException: The operation failed because the secret {name} already exists.",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: _missing,
    },
)

_version = ResourceType(
    token="aws:secretsmanager/secretVersion:SecretVersion",
    noun="secret version",
    code="ResourceNotFoundException",
    identify=lambda call: call.fresh(lambda digits: f"{call.text('secretId')}|{guid(digits)}"),
    outputs=_version_outputs,
    where=("region",),
    replace_on=("secretId", "secretString", "secretBinary", "secretStringWoVersion"),
    # Values are deleted with their secret.
    references=(Reference("secretId", (SECRET,), holds=False),),
    refuse=(_one_value, _size),
)

TYPES = (_secret, _version)
