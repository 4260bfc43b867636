"""Secret Manager."""

from __future__ import annotations

import base64
import re
from itertools import count

from sandbox.simcloud.gcp.common import bare, chosen, labelled, labels, project_number
from sandbox.simcloud.gcp.kms import by_key, usable
from sandbox.simcloud.gcp.tokens import KEY, SECRET
from sandbox.simcloud.gcp.words import PREVENTED, conflict
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, RefusalError, ResourceType, Saying
from sandbox.simcloud.values import Properties, at

_AUTO = "replication.auto.customerManagedEncryption.kmsKeyName"
_REPLICAS = "replication.userManaged.replicas[]"
_OF_REPLICA = f"{_REPLICAS}.customerManagedEncryption.kmsKeyName"
_DENIED = "googleapi: Error 403: Permission '{permission}' denied on resource '{key}' (or it may not exist)., forbidden"
# "SecretPayload", Secret Manager API.
_MOST_BYTES = 65536


def _replication(call: Call) -> None:
    given = [name for name in ("auto", "userManaged") if name in (call.inputs.get("replication") or {})]
    if len(given) != 1:
        raise conflict("replication", "one of `auto,user_managed` must be specified", "choose one")
    if given == ["userManaged"] and not list(at(call.inputs, _REPLICAS)):
        raise conflict("replication.userManaged.replicas", "at least 1 is required", "set where the secret is stored")


def _key_places(call: Call) -> None:
    """Check that keys are in the secret's location, or global ("CustomerManagedEncryption", Secret Manager API)."""
    keys = [("global", text) for text in at(call.inputs, _AUTO)]
    for row in at(call.inputs, _REPLICAS):
        keys += [(str(row.get("location", "")), text) for text in at(row, "customerManagedEncryption.kmsKeyName")]
    for place, text in keys:
        if f"/locations/{place}/" not in str(text) and call.world.find((KEY,), bare(call, str(text))):
            raise RefusalError(
                f"googleapi: Error 400: The KMS key '{text}' must be in location '{place}'., badRequest; "
                f"use a key of {place}",
                "replication",
            )


def _secret_outputs(call: Call) -> Properties:
    annotations = call.inputs.get("annotations") or {}
    return {
        "name": f"projects/{project_number(call.text('project'))}/secrets/{call.name}",
        "createTime": "2026-01-01T00:00:00.000000Z",
        "effectiveAnnotations": annotations,
        **labels(call),
        **chosen(call, {"expireTime": lambda _: ""}),
    }


def _protected(call: Call) -> None:
    if call.inputs.get("deletionProtection"):
        raise RefusalError(
            f"cannot destroy secret {call.id} without setting deletion_protection=false; set deletionProtection to "
            "false and update before deleting"
        )


def _version_id(call: Call) -> str:
    """Return the next version's ID. Versions are numbered, and numbers are never reused."""
    secret = call.target("secret")
    name = str(secret.outputs["name"]) if secret else call.text("secret")
    return next(id_ for i in count(1) if call.world.is_fresh(id_ := f"{name}/versions/{i}"))


def _version_outputs(call: Call) -> Properties:
    return {
        "name": call.id,
        "version": call.id.rpartition("/")[2],
        "createTime": "2026-01-01T00:00:00.000000Z",
        "destroyTime": "",
    }


def _payload(call: Call) -> None:
    text = next((call.text(name) for name in ("secretData", "secretDataWo") if call.inputs.get(name)), "")
    if not text:
        raise conflict("secretData", "one of `secret_data,secret_data_wo` must be specified", "give the value")
    size = len(base64.b64decode(text)) if call.inputs.get("isSecretDataBase64") else len(text.encode())
    if size > _MOST_BYTES:
        raise RefusalError(
            f"googleapi: Error 400: Invalid resource field value in the request: the payload has {size} bytes., "
            f"badRequest; at most {_MOST_BYTES} bytes fit: split it, or compress it",
            "secretData",
        )


TYPES = (
    ResourceType(
        token=SECRET,
        noun="Secret",
        identify=lambda call: f"projects/{call.text('project')}/secrets/{call.name}",
        outputs=_secret_outputs,
        # "CreateSecretRequest", Secret Manager API.
        naming=Naming("secretId", re.compile(r"[a-zA-Z0-9_-]{1,255}"), 255, "1 to 255 of letters, digits, _ and -"),
        where=("project",),
        replace_on=("secretId", "tags", "replication.auto", "replication.userManaged.replicas[].location"),
        replace_if={"replication": lambda old, new: set(old or {}) != set(new or {})},
        references=(by_key(_AUTO), by_key(_OF_REPLICA)),
        refuse=(
            labelled,
            _replication,
            _key_places,
            *(usable(path, "gcp-sa-secretmanager.iam.gserviceaccount.com", _DENIED) for path in (_AUTO, _OF_REPLICA)),
        ),
        refuse_deletion=(_protected,),
        protected_by={"deletionPolicy": "PREVENT"},
        says={
            **PREVENTED,
            Reason.TAKEN: Saying(
                "googleapi: Error 409: Secret [{id}] already exists., alreadyExists",
                "choose another secretId, import it (`pulumi import {type} <name> {id}`), or delete it",
            ),
        },
    ),
    ResourceType(
        token="gcp:secretmanager/secretVersion:SecretVersion",
        noun="SecretVersion",
        identify=_version_id,
        outputs=_version_outputs,
        replace_on=("secretData", "secretDataWoVersion", "secret", "project", "isSecretDataBase64"),
        # Versions are deleted with their secret.
        references=(Reference("secret", (SECRET,), holds=False, resolve=bare),),
        refuse=(_payload,),
        protected_by={"deletionPolicy": "PREVENT"},
        says=PREVENTED,
    ),
)
