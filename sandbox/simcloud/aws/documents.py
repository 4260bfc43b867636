"""Policies of AWS as JSON: their grammar, and who and what their statements may name."""

from __future__ import annotations

import json
import re
from typing import Any

from sandbox.simcloud.aws.common import refused
from sandbox.simcloud.rules import Call, Rule

MALFORMED = "MalformedPolicyDocument"

# "IAM JSON policy elements reference".
_VERSIONS = ("2012-10-17", "2008-10-17")
_TOP = {"Version", "Id", "Statement"}
_ELEMENTS = {
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource"),
    "Condition",
}
_PAIRS = (("Action", "NotAction"), ("Resource", "NotResource"), ("Principal", "NotPrincipal"))
# "IAM JSON policy elements: Condition operators".
_OPERATOR = re.compile(
    r"(For(All|Any)Values?:)?(String(Not)?(Equals(IgnoreCase)?|Like)"
    r"|(Numeric|Date)((Not)?Equals|(Less|Greater)Than(Equals)?)|Bool|BinaryEquals|(Not)?IpAddress"
    r"|Arn(Not)?(Equals|Like))(IfExists)?|Null"
)
# "AWS JSON policy elements: Principal". Roles and users also have unique IDs, which a policy shows after their deletion.
_PRINCIPALS = {
    "AWS": re.compile(
        r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::\d{12}:[^\s]+|A[A-Z]{3}[A-Z0-9]{12,}"
        # "Restrict access to an Amazon S3 origin" (CloudFront).
        r"|arn:aws[a-z-]*:iam::cloudfront:user/CloudFront Origin Access Identity [A-Z0-9]+"
    ),
    "Service": re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.amazonaws\.com(\.cn)?"),
    "Federated": re.compile(r"\S+"),
    "CanonicalUser": re.compile(r"[0-9a-f]{64}"),
}


def document(text: str, path: str, code: str = MALFORMED) -> dict[str, Any]:
    """Return the parsed policy. Raises the refusal if it is not a policy."""
    try:
        policy = json.loads(text)
    except ValueError as error:
        raise refused(code, "This policy contains invalid Json", f"{path}: {error}") from None
    if not isinstance(policy, dict) or not statements(policy):
        raise refused(code, "Syntax errors in policy.", f"{path} must be an object with a Statement")
    _only(policy, _TOP, path, code)
    if policy.get("Version", _VERSIONS[0]) not in _VERSIONS:
        raise refused(code, "The policy must contain a valid version string", f"{path}: write {_VERSIONS[0]}")
    for statement in statements(policy):
        _elements(statement, path, code)
    return policy


def statements(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the statements of a policy."""
    entries = policy.get("Statement") or []
    return [entries] if isinstance(entries, dict) else list(entries)


def texts(value: Any) -> list[str]:
    """Return a policy field that may be a single value or a list, as a list."""
    return [str(item) for item in value] if isinstance(value, list) else [] if value is None else [str(value)]


def policy_is_json(path: str, code: str = MALFORMED) -> Rule:
    """Return a rule: the text at `path` is a policy."""

    def rule(call: Call) -> None:
        if call.text(path):
            document(call.text(path), path, code)

    return rule


def of_resource(path: str, service: str, code: str) -> Rule:
    """Return a rule: the text at `path` is a policy of a resource, with principals, for actions of one service."""

    def rule(call: Call) -> None:
        for statement in statements(document(call.text(path), path, code)):
            principals(statement, path, code)
            actions_of(statement, service, path, code)

    return rule


def grammar(statement: dict[str, Any], path: str) -> None:
    """Check what IAM requires of a statement."""
    if not texts(statement.get("Action", statement.get("NotAction"))):
        raise refused(MALFORMED, "Policy statement must contain actions.", f"{path}: every statement needs an Action")
    for action in texts(statement.get("Action")):
        # "IAM JSON policy elements: Action": neither half depends on case.
        if action != "*" and not re.fullmatch(r"[A-Za-z0-9-]+:[A-Za-z0-9*?]+", action):
            raise refused(
                MALFORMED,
                "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.",
                f"{path}: {action} is not an action of a service; write <service>:<action>",
            )


def principals(statement: dict[str, Any], path: str, code: str) -> None:
    """Check that a statement says for whom it is, by accounts, ARNs and services."""
    given = statement.get("Principal", statement.get("NotPrincipal"))
    if not given:
        raise refused(code, "Missing required field Principal", f"{path}: set a Principal in each statement")
    kinds = {"AWS": given} if isinstance(given, str) else given
    for kind, names in kinds.items():
        shape = _PRINCIPALS.get(kind)
        wrong = next((name for name in texts(names) if shape is None or not shape.fullmatch(name)), None)
        if wrong is not None:
            raise refused(
                code,
                f'Invalid principal in policy: "{kind}":"{wrong}"',
                f"{path}: name accounts and ARNs as AWS, and services as Service, such as ec2.amazonaws.com",
            )


def actions_of(statement: dict[str, Any], service: str, path: str, code: str) -> None:
    """Check that a statement names only actions of one service."""
    for action in (*texts(statement.get("Action")), *texts(statement.get("NotAction"))):
        if action != "*" and not action.lower().startswith(f"{service}:"):
            raise refused(code, "Policy has invalid action", f"{path}: {action} is not an action of {service}")


def sids(entries: list[dict[str, Any]]) -> None:
    """Check that the IDs of statements are unique, and of letters and digits."""
    ids = [str(statement["Sid"]) for statement in entries if statement.get("Sid")]
    if len(set(ids)) < len(ids):
        raise refused(
            MALFORMED, "Statement IDs (SID) in a single policy must be unique.", f"policy: {', '.join(sorted(ids))}"
        )
    for sid in ids:
        if not re.fullmatch("[0-9A-Za-z]*", sid):
            raise refused(
                MALFORMED,
                "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression "
                "[0-9A-Za-z]*",
                f"policy: {sid} does not",
            )


def _elements(statement: dict[str, Any], path: str, code: str) -> None:
    """Check the elements of a statement, and the operators of its condition."""
    _only(statement, _ELEMENTS, path, code)
    if statement.get("Effect") not in ("Allow", "Deny"):
        raise refused(code, "Syntax errors in policy.", f"{path}: Effect must be Allow or Deny")
    for one, other in _PAIRS:
        if one in statement and other in statement:
            raise refused(code, "Syntax errors in policy.", f"{path}: a statement has {one} or {other}, not both")
    for operator in statement.get("Condition") or {}:
        if not _OPERATOR.fullmatch(operator):
            raise refused(code, f"Invalid Condition type : {operator}", f"{path}: such as StringEquals or ArnLike")


def _only(given: dict[str, Any], allowed: set[str], path: str, code: str) -> None:
    unknown = next((name for name in given if name not in allowed), None)
    if unknown is not None:
        raise refused(code, "Syntax errors in policy.", f"{path}: {unknown} is not one of {', '.join(sorted(allowed))}")
