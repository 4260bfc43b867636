"""The documented AWS policies, checked by a linter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stacks.linter import problems

DOCS = Path(__file__).resolve().parents[2] / "docs"
POLICIES = sorted(path.name for path in DOCS.glob("aws-policy*.json"))
KNOWN = {
    # Public parameters belong to no account; parliament requires one.
    ("aws-policy.json", "RESOURCE_MISMATCH", "Ssm"),
    # The identity that runs `up` writes the policies of the clusters' buckets. docs/explanation/threats.md explains the consequences.
    ("aws-policy.json", "RESOURCE_POLICY_PRIVILEGE_ESCALATION", ""),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_linter_accepts_the_documented_policies_of_aws(name: str) -> None:
    of_this = {(rule, sid) for file, rule, sid in KNOWN if file == name}
    assert problems((DOCS / name).read_text()) == of_this


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"Action": "iam:PutRolePolicies"}, "UNKNOWN_ACTION"),
        ({"Resource": "arn:aws:s3:::bucket"}, "RESOURCE_MISMATCH"),
        ({"Condition": {"StringEquals": {"iam:PermissionBoundary": "a"}}}, "UNKNOWN_CONDITION_FOR_ACTION"),
    ],
)
def test_the_linter_finds_what_aws_does_not_know(change: dict[str, object], rule: str) -> None:
    own = {"Effect": "Allow", "Action": "iam:PutRolePolicy", "Resource": "arn:aws:iam::*:role/menagerie/*", **change}
    text = json.dumps({"Version": "2012-10-17", "Statement": [own]}, indent=2)
    assert rule in {issue for issue, _ in problems(text)}
