"""What the identity that runs `up` must be allowed to do: policies from `permissions.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cluster.document import parse
from stacks.aws import policies, volume_rights

_FILE = Path(__file__).with_name("permissions.yaml")
ANY = "any"
_PASS = "iam:PassRole"
_BOUNDED = ("iam:CreateRole", "iam:DeleteRolePolicy", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy")
"""Actions that grant permissions. IAM checks the role's boundary for these ("Actions, resources, and condition keys for AWS
Identity and Access Management")."""
_BUCKETS = ("backups", "audit", "logs", "artefacts")
_EMPTIED = ("logs", "artefacts")
_RECORDS = [f"arn:aws:s3:::*-artefacts-*/{folder}/*" for folder in ("machines", "operations")]
"""Objects that every operator reads and writes: who works on a cluster, and which machines are installed."""
# Services whose resources the stack names: the policy excludes other resources.
_ROLES = f"arn:aws:iam::*:role{policies.PATH}*"
_OWN = {
    "iam": [_ROLES, f"arn:aws:iam::*:instance-profile{policies.PATH}*"],
    "secretsmanager": ["arn:aws:secretsmanager:*:*:secret:menagerie/*"],
    "s3": [*(f"arn:aws:s3:::*-{use}-*" for use in _BUCKETS), *(f"arn:aws:s3:::*-{use}-*/*" for use in _EMPTIED)],
    "ssm": ["arn:aws:ssm:*::parameter/aws/service/*"],
}


@cache
def by_type() -> dict[str, tuple[str, ...]]:
    """Return type or function -> actions that its lifecycle needs."""
    actions_by_type = parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data
    return {str(type_): tuple(actions) for type_, actions in actions_by_type.items()}


def documents() -> dict[str, str]:
    """Return name -> policy. There are two: an IAM policy has at most 6,144 characters without white space ("IAM and AWS STS
    quotas"). The first has the longest statement, and the last one, for which the second has no room."""
    first = ("Ec2", "Records")
    every = statements(by_type())
    return {
        "aws-policy-ec2.json": _document([statement for statement in every if statement["Sid"] in first]),
        "aws-policy.json": _document([statement for statement in every if statement["Sid"] not in first]),
    }


def statements(types: Iterable[str]) -> list[dict[str, object]]:
    """Return the statements that allow what these types need."""
    services: dict[str, set[str]] = {}
    for action in {action for type_ in types for action in by_type()[type_]} - {_PASS, *_BOUNDED}:
        services.setdefault(action.partition(":")[0], set()).add(action)
    listed: list[dict[str, object]] = [
        {"Sid": service.title(), "Effect": "Allow", "Action": sorted(actions), "Resource": _OWN.get(service, "*")}
        for service, actions in sorted(services.items())
    ]
    # These actions apply only to roles with the boundary.
    bounded: dict[str, object] = {
        "Sid": "Bounded",
        "Effect": "Allow",
        "Action": list(_BOUNDED),
        "Resource": _ROLES,
        "Condition": {"ArnLike": {"iam:PermissionsBoundary": policies.boundary_arn("aws", "*")}},
    }
    # Hosts' roles may be passed only to machines.
    passed: dict[str, object] = {
        "Sid": "PassRole",
        "Effect": "Allow",
        "Action": _PASS,
        "Resource": _ROLES,
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }
    records: dict[str, object] = {
        "Sid": "Records",
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject"],
        "Resource": _RECORDS,
    }
    return [*listed, bounded, passed, records]


def boundary() -> str:
    """Return the maximum permissions of any host of any cluster, whatever its role says: everything that `policies` and
    `volume_rights` grant, on resources with our names. A role's own policy selects from these."""
    place = volume_rights.Place("*", "*", "*", "*", "aws", "*")
    volumes = [*volume_rights.disks(place, "*"), *volume_rights.files(place, "*")]
    actions = {action for statement in volumes for action in _listed(statement["Action"])}
    keys = {action for action in actions if action.startswith("kms:")} | {"kms:Decrypt", "kms:GenerateDataKey"}
    describing = {action for action in actions if ":Describe" in action} - keys
    made_by_services = {
        "StringLike": {"kms:ViaService": [f"{service}.*.amazonaws.com" for service in ("secretsmanager", "s3", "ec2")]}
    }
    # Credentials that were issued to a machine; they can't be used with other holders of a role.
    on_machines = {"Null": {"aws:Ec2InstanceSourceVpc": "false"}}
    objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"]
    buckets = [f"arn:aws:s3:::*-{use}-*" for use in _BUCKETS]
    secrets = ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"]
    return _document(
        [
            {"Sid": "Secrets", "Effect": "Allow", "Action": secrets, "Resource": _OWN["secretsmanager"]},
            {"Sid": "Buckets", "Effect": "Allow", "Action": objects, "Resource": buckets},
            {"Sid": "Keys", "Effect": "Allow", "Action": sorted(keys), "Resource": "*", "Condition": made_by_services},
            {"Sid": "Looks", "Effect": "Allow", "Action": sorted(describing), "Resource": "*"},
            {
                "Sid": "Volumes",
                "Effect": "Allow",
                "Action": sorted(actions - keys - describing),
                "Resource": "*",
                "Condition": on_machines,
            },
        ]
    )


def _listed(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value] if isinstance(value, list) else []


def _document(statements: list[dict[str, object]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, indent=2) + "\n"
