"""AWS identities, and the policies that grant them permissions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.common import by_name, refused, tags
from sandbox.simcloud.aws.documents import MALFORMED, actions_of, document, grammar, principals, sids, statements, texts
from sandbox.simcloud.aws.tokens import PROFILE, ROLE
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties

# "IAM and AWS STS quotas": characters without white space, of all inline policies of a role and of its trust policy.
_INLINE, _TRUST = 10240, 2048
_ALLOWED = re.compile(r"[\w+=,.@-]+", re.ASCII)
_WORDS = "it may have only a-z, A-Z, 0-9 and _+=,.@-"


def _naming(longest: int) -> Naming:
    return Naming("name", _ALLOWED, longest, _WORDS)


def _longest(kind: str) -> int:
    return of(Cloud.AWS).names[kind].max


def _length(text: str) -> int:
    return len(re.sub(r"\s", "", text))


def _permissions(call: Call) -> None:
    policy = document(call.text("policy"), "policy")
    for statement in statements(policy):
        grammar(statement, "policy")
        if "Principal" in statement:
            raise refused(
                MALFORMED,
                "Policy document should not specify a principal.",
                "the role is the principal of its own policy",
            )
        resources = texts(statement.get("Resource", statement.get("NotResource")))
        if not resources:
            raise refused(
                MALFORMED, "Policy statement must contain resources.", "policy: every statement needs a Resource"
            )
        for resource in resources:
            if resource != "*" and not resource.startswith("arn:"):
                raise refused(
                    MALFORMED, f'Resource {resource} must be in ARN format or "*".', "policy: give the resource's arn"
                )
    sids(statements(policy))


def _trust(call: Call) -> None:
    text = call.text("assumeRolePolicy")
    for statement in statements(document(text, "assumeRolePolicy")):
        grammar(statement, "assumeRolePolicy")
        if "Resource" in statement:
            raise refused(
                MALFORMED,
                "Has prohibited field Resource",
                "leave Resource out: assumeRolePolicy applies to the role itself",
            )
        if not statement.get("Principal"):
            raise refused(
                MALFORMED,
                "Missing required field Principal cannot be empty!",
                "assumeRolePolicy: set who may assume the role",
            )
        principals(statement, "assumeRolePolicy", MALFORMED)
        actions_of(statement, "sts", "assumeRolePolicy", MALFORMED)
    if _length(text) > _TRUST:
        raise refused(
            "LimitExceeded",
            f"Cannot exceed quota for ACLSizePerRole: {_TRUST}",
            f"assumeRolePolicy has {_length(text)} characters without white space",
        )


def _inline_policies(call: Call) -> Iterator[str]:
    for other in call.world.of_type(_ROLE_POLICY):
        if other.id != call.id and other.inputs.get("role") == call.text("role"):
            yield str(other.inputs.get("policy"))


def _room(call: Call) -> None:
    total = _length(call.text("policy")) + sum(map(_length, _inline_policies(call)))
    if total > _INLINE:
        raise refused(
            "LimitExceeded",
            f"Maximum policy size of {_INLINE} bytes exceeded for role {call.text('role')}",
            f"its inline policies would have {total} characters without white space",
        )


def _identity(kind: str, prefix: str) -> Any:
    """Return a function for the outputs of what IAM knows by a name and a path."""

    def outputs(call: Call) -> Properties:
        path = call.text("path") or "/"
        return {
            "arn": f"arn:aws:iam::{call.settings.account}:{kind}{path}{call.name}",
            "path": path,
            "uniqueId": call.old.outputs["uniqueId"] if call.old else f"{prefix}{digest(call.urn)[:17].upper()}",
            "createDate": "2026-01-01T00:00:00Z",
            **tags(call),
        }

    return outputs


_ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"

_TAKEN = Saying(
    "api error EntityAlreadyExists: {noun} with name {name} already exists.",
    "choose another name, import the existing one, or delete it",
)
_MISSING = Saying(
    "api error NoSuchEntity: The {noun} with name {value} cannot be found.",
    "{path} must name something that exists",
)

_role = ResourceType(
    token=ROLE,
    noun="role",
    code="NoSuchEntity",
    identify=by_name,
    outputs=_identity("role", "AROA"),
    naming=_naming(_longest("role")),
    replace_on=("name", "namePrefix", "path"),
    refuse=(_trust,),
    says={
        Reason.TAKEN: _TAKEN,
        Reason.MISSING: _MISSING,
        Reason.IN_USE: Saying(
            "api error DeleteConflict: Cannot delete entity, must delete policies first and remove roles from instance "
            "profile.",
            "delete first: {users}",
        ),
    },
)

_role_policy = ResourceType(
    token=_ROLE_POLICY,
    noun="role policy",
    code="NoSuchEntity",
    identify=lambda call: f"{call.text('role')}:{call.name}",
    naming=_naming(128),
    replace_on=("name", "namePrefix", "role"),
    references=(Reference("role", (ROLE,)),),
    refuse=(_permissions, _room),
    # IAM writes a role's policy whether or not one with this name exists.
    upserts=True,
)

_profile = ResourceType(
    token=PROFILE,
    noun="instance profile",
    code="NoSuchEntity",
    identify=by_name,
    outputs=_identity("instance-profile", "AIPA"),
    naming=_naming(_longest("instance_profile")),
    replace_on=("name", "namePrefix", "path"),
    references=(Reference("role", (ROLE,)),),
    says={
        Reason.TAKEN: Saying(
            "api error EntityAlreadyExists: Instance Profile {name} already exists.",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error InvalidParameterValue: Value ({value}) for parameter iamInstanceProfile.name is invalid. Invalid "
            "IAM Instance Profile name",
            "{path} must name something that exists",
        ),
    },
)

TYPES = (_role, _role_policy, _profile)
