"""What whoever runs `up` must be allowed to do: policies from `permissions.yaml`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from cluster.document import parse

_FILE = Path(__file__).with_name("permissions.yaml")
ANY = "any"
_PASS = "iam:PassRole"
_BUCKETS = ("backups", "logs", "artefacts")
_EMPTIED = ("logs", "artefacts")
# Services whose resources the stack names: the policy leaves those of others alone.
_OWN = {
    "iam": ["arn:aws:iam::*:role/*", "arn:aws:iam::*:instance-profile/*"],
    "secretsmanager": ["arn:aws:secretsmanager:*:*:secret:menagerie/*"],
    "s3": [*(f"arn:aws:s3:::*-{use}-*" for use in _BUCKETS), *(f"arn:aws:s3:::*-{use}-*/*" for use in _EMPTIED)],
    "ssm": ["arn:aws:ssm:*::parameter/aws/service/*"],
}


@cache
def by_type() -> dict[str, tuple[str, ...]]:
    """Type or function -> actions that its life takes."""
    found = parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data
    return {str(type_): tuple(actions) for type_, actions in found.items()}


def documents() -> dict[str, str]:
    """Name -> policy. Two, for a policy of IAM has at most 6,144 characters without white space ("IAM and AWS STS quotas");
    EC2 alone comes to more than half of that."""
    services: dict[str, set[str]] = {}
    for action in {action for actions in by_type().values() for action in actions} - {_PASS}:
        services.setdefault(action.partition(":")[0], set()).add(action)
    made: list[dict[str, object]] = [
        {"Sid": service.title(), "Effect": "Allow", "Action": sorted(actions), "Resource": _OWN.get(service, "*")}
        for service, actions in sorted(services.items())
    ]
    # Hosts' roles may be given to machines alone.
    passed: dict[str, object] = {
        "Sid": "PassRole",
        "Effect": "Allow",
        "Action": _PASS,
        "Resource": "arn:aws:iam::*:role/*",
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }
    ec2 = [statement for statement in made if statement["Sid"] == "Ec2"]
    others = [statement for statement in made if statement["Sid"] != "Ec2"]
    return {"aws-policy-ec2.json": _document(ec2), "aws-policy.json": _document([*others, passed])}


def _document(statements: list[dict[str, object]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, indent=2) + "\n"
