"""The least rights that `doctor` needs, as each cloud takes them: docs/how-to/doctor.md says how to grant them.

An identity with the operator's rights alone gets `unknown` where it lacks one of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from cluster.spec import Cloud
from operations.doctor.model import Question

FILES = {
    Cloud.AWS: "aws-policy-doctor.json",
    Cloud.AZURE: "azure-role-doctor.json",
    Cloud.GCP: "gcp-role-doctor.yaml",
}
"""Cloud -> file in docs/."""


def document(cloud: Cloud, questions: Iterable[Question]) -> str:
    """Return the policy or role with the rights of the questions."""
    rights = sorted({right for question in questions for right in question.rights})
    if cloud is Cloud.AWS:
        statement = {"Sid": "Looks", "Effect": "Allow", "Action": rights, "Resource": "*"}
        return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2) + "\n"
    if cloud is Cloud.AZURE:
        role = {
            "Name": "Menagerie doctor",
            "IsCustom": True,
            "Description": "Reads what `menagerie doctor` asks about.",
            "Actions": rights,
            "NotActions": [],
            "AssignableScopes": ["/subscriptions/SUBSCRIPTION"],
        }
        return json.dumps(role, indent=2) + "\n"
    return (
        "# Exactly the permissions that `doctor` needs in a project:\n"
        "#   gcloud iam roles create menagerieDoctor --project=PROJECT --file=docs/gcp-role-doctor.yaml\n"
        "title: Menagerie doctor\n"
        "description: Reads what menagerie doctor asks about.\n"
        "stage: GA\n"
        "includedPermissions:\n"
    ) + "".join(f"  - {right}\n" for right in rights)
