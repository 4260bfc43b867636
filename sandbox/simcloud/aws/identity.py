"""AWS identities, and the policies that grant them permissions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.aws.common import by_name, refused, tags
from sandbox.simcloud.aws.tokens import PROFILE, ROLE
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties

# "IAM and AWS STS quotas": characters without white space, of all inline policies of a role and of its trust policy.
_INLINE, _TRUST = 10240, 2048
_ALLOWED = re.compile(r"[\w+=,.@-]+", re.ASCII)
_WORDS = "it may have only a-z, A-Z, 0-9 and _+=,.@-"
_VERSIONS = ("2012-10-17", "2008-10-17")
_MALFORMED = "MalformedPolicyDocument"


def _naming(longest: int) -> Naming:
    return Naming("name", _ALLOWED, longest, _WORDS)


def _longest(kind: str) -> int:
    return of(Cloud.AWS).names[kind].max


def document(text: str, path: str, code: str = _MALFORMED) -> dict[str, Any]:
    """Return the parsed policy. Raises the refusal if it is not a policy."""
    try:
        policy = json.loads(text)
    except ValueError as error:
        raise refused(code, "This policy contains invalid Json", f"{path}: {error}") from None
    if not isinstance(policy, dict) or not statements(policy):
        raise refused(code, "Syntax errors in policy.", f"{path} must be an object with a Statement")
    return policy


def statements(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the statements of a policy."""
    entries = policy.get("Statement") or []
    return [entries] if isinstance(entries, dict) else list(entries)


def texts(value: Any) -> list[str]:
    """Return a policy field that may be a single value or a list, as a list."""
    return [str(item) for item in value] if isinstance(value, list) else [] if value is None else [str(value)]


def policy_is_json(path: str, code: str = _MALFORMED) -> Rule:
    """Return a rule: the text at `path` is a policy."""

    def rule(call: Call) -> None:
        if call.text(path):
            document(call.text(path), path, code)

    return rule


def _length(text: str) -> int:
    return len(re.sub(r"\s", "", text))


def _grammar(statement: dict[str, Any], path: str) -> None:
    """Check what both kinds of policy require of a statement."""
    if statement.get("Effect") not in ("Allow", "Deny"):
        raise refused(_MALFORMED, "Syntax errors in policy.", f"{path}: Effect must be Allow or Deny")
    if not texts(statement.get("Action", statement.get("NotAction"))):
        raise refused(_MALFORMED, "Policy statement must contain actions.", f"{path}: every statement needs an Action")
    for action in texts(statement.get("Action")):
        if action != "*" and not re.fullmatch(r"[a-z0-9-]+:[A-Za-z0-9*?]+", action):
            raise refused(
                _MALFORMED,
                "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.",
                f"{path}: {action} is not an action of a service; write <service>:<action>",
            )


def _permissions(call: Call) -> None:
    policy = document(call.text("policy"), "policy")
    if policy.get("Version", _VERSIONS[0]) not in _VERSIONS:
        raise refused(_MALFORMED, "The policy must contain a valid version string", f"write {_VERSIONS[0]}")
    for statement in statements(policy):
        _grammar(statement, "policy")
        if "Principal" in statement:
            raise refused(
                _MALFORMED,
                "Policy document should not specify a principal.",
                "the role is the principal of its own policy",
            )
        resources = texts(statement.get("Resource", statement.get("NotResource")))
        if not resources:
            raise refused(
                _MALFORMED, "Policy statement must contain resources.", "policy: every statement needs a Resource"
            )
        for resource in resources:
            if resource != "*" and not resource.startswith("arn:"):
                raise refused(
                    _MALFORMED, f'Resource {resource} must be in ARN format or "*".', "policy: give the resource's arn"
                )
    _sids(statements(policy))


def _sids(entries: list[dict[str, Any]]) -> None:
    sids = [str(statement["Sid"]) for statement in entries if statement.get("Sid")]
    if len(set(sids)) < len(sids):
        raise refused(
            _MALFORMED, "Statement IDs (SID) in a single policy must be unique.", f"policy: {', '.join(sorted(sids))}"
        )
    for sid in sids:
        if not re.fullmatch("[0-9A-Za-z]*", sid):
            raise refused(
                _MALFORMED,
                "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression "
                "[0-9A-Za-z]*",
                f"policy: {sid} does not",
            )


def _trust(call: Call) -> None:
    text = call.text("assumeRolePolicy")
    for statement in statements(document(text, "assumeRolePolicy")):
        _grammar(statement, "assumeRolePolicy")
        if "Resource" in statement:
            raise refused(
                _MALFORMED,
                "Has prohibited field Resource",
                "leave Resource out: assumeRolePolicy applies to the role itself",
            )
        if not statement.get("Principal"):
            raise refused(
                _MALFORMED,
                "Missing required field Principal cannot be empty!",
                "assumeRolePolicy: set who may assume the role",
            )
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
