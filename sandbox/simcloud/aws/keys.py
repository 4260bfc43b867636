"""Keys of AWS KMS."""

from __future__ import annotations

import re
from typing import Any

from sandbox.simcloud.aws.common import arn, refused, tags
from sandbox.simcloud.aws.documents import actions_of, document, principals, statements, texts
from sandbox.simcloud.aws.tokens import KEY, KEY_ALIAS
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties

# "Resource quotas" of AWS KMS.
_POLICY_BYTES = 32768
_WINDOWS = {"deletionWindowInDays": (7, 30), "rotationPeriodInDays": (90, 2560)}
# "CreateAlias".
_ALIAS = re.compile(r"alias/(?!aws/)[a-zA-Z0-9/_-]{1,250}")

KEY_OF = (KEY, KEY_ALIAS)
"""The types that may identify a key: the key by ID or ARN, or an alias."""


def _key_outputs(call: Call) -> Properties:
    return {
        "arn": arn(call, "kms", f"key/{call.id}"),
        "keyId": call.id,
        "keyUsage": call.inputs.get("keyUsage", "ENCRYPT_DECRYPT"),
        "customerMasterKeySpec": call.inputs.get("customerMasterKeySpec", "SYMMETRIC_DEFAULT"),
        "multiRegion": call.inputs.get("multiRegion", False),
        **tags(call),
    }


def _windows(call: Call) -> None:
    for name, (least, most) in _WINDOWS.items():
        days = call.inputs.get(name)
        if days is not None and not least <= days <= most:
            raise refused(
                "", f"expected {name} to be in the range ({least} - {most}), got {days:.0f}", "set it within", name
            )


def _policy(call: Call) -> None:
    """Check that the policy is one, is not too long, and lets the account or the caller change it again."""
    text = call.text("policy")
    if not text or call.inputs.get("bypassPolicyLockoutSafetyCheck"):
        return
    code = "MalformedPolicyDocumentException"
    policy = document(text, "policy", code)
    if len(text.encode()) > _POLICY_BYTES:
        raise refused("LimitExceededException", f"Policy is longer than {_POLICY_BYTES} bytes", f"it has {len(text)}")
    _principals_exist(call, policy, code)
    own = {"*", call.settings.account, f"arn:aws:iam::{call.settings.account}:root"}
    for statement in statements(policy):
        principal = statement.get("Principal")
        principals = texts(principal.get("AWS") if isinstance(principal, dict) else principal)
        actions = {action.lower() for action in texts(statement.get("Action"))}
        is_safe = own & set(principals) and {"*", "kms:*", "kms:put*", "kms:putkeypolicy"} & actions
        if statement.get("Effect") == "Allow" and is_safe:
            return
    raise refused(
        code,
        "The new key policy will not allow you to update the key policy in the future.",
        f"policy: allow kms:* to arn:aws:iam::{call.settings.account}:root",
    )


def _principals_exist(call: Call, policy: dict[str, Any], code: str) -> None:
    """Refuse what is no principal, and service-linked roles that the account has not ("Using service-linked roles for Auto Scaling")."""
    for statement in statements(policy):
        principals(statement, "policy", code)
        actions_of(statement, "kms", "policy", code)
        principal = statement.get("Principal")
        for name in texts(principal.get("AWS")) if isinstance(principal, dict) else ():
            service = name.partition(":role/aws-service-role/")[2].partition("/")[0]
            if service and not call.offers.services("aws", service):
                raise refused(
                    code,
                    "Policy contains a statement with one or more invalid principals.",
                    f"aws iam create-service-linked-role --aws-service-name {service}",
                )


def _alias_name(call: Call) -> str:
    return call.text("name") or call.fresh(lambda digits: f"alias/{call.urn.rpartition('::')[2]}-{digits[:7]}")


def _alias_form(call: Call) -> None:
    if not _ALIAS.fullmatch(call.id):
        raise refused(
            "ValidationException" if call.id.startswith("alias/") else "",
            f'invalid value for name ({call.id}): it must begin with "alias/", not with "alias/aws/", and have only '
            "a-z, A-Z, 0-9 and /_-",
            "write alias/<name>",
            "name",
        )


_missing = Saying(
    "api error NotFoundException: Key '{value}' does not exist", "{path} must name something that exists in {region}"
)

_key = ResourceType(
    token=KEY,
    noun="key",
    code="NotFoundException",
    identify=lambda call: call.fresh(guid),
    outputs=_key_outputs,
    where=("region",),
    replace_on=("customKeyStoreId", "customerMasterKeySpec", "keyUsage", "multiRegion", "xksKeyId"),
    refuse=(_windows, _policy),
    says={Reason.MISSING: _missing, Reason.ELSEWHERE: Saying(_missing.text, "it is in {its_region}, not in {region}")},
)

_alias = ResourceType(
    token=KEY_ALIAS,
    noun="alias",
    code="NotFoundException",
    identify=_alias_name,
    outputs=lambda call: {
        "name": call.id,
        "arn": arn(call, "kms", call.id),
        "targetKeyArn": key.outputs["arn"] if (key := call.target("targetKeyId")) else "",
    },
    where=("region",),
    replace_on=("name", "namePrefix"),
    # AWS deletes a key's aliases with it.
    references=(Reference("targetKeyId", (KEY,), holds=False),),
    refuse=(_alias_form,),
    says={
        Reason.TAKEN: Saying(
            "api error AlreadyExistsException: An alias with the name arn:aws:kms:{region}:{account}:{id} already exists",
            "choose another name, import the existing one, or delete it",
        )
    },
)

TYPES = (_key, _alias)
