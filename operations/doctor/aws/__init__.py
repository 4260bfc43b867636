"""The questions about an account of AWS. docs/how-to/doctor.md describes each."""

from __future__ import annotations

from clients.clouds.aws_reader import AwsReader
from cluster.needs import uses
from cluster.spec import Cluster
from operations.doctor.aws.account import Account, account_questions
from operations.doctor.aws.machines import machine_questions
from operations.doctor.aws.quotas import quota_questions
from operations.doctor.model import Question

ADVICE = (
    "run `aws configure sso` and `aws sso login --profile <name>` and set AWS_PROFILE, or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY"
)


def questions(cluster: Cluster, project: str) -> list[Question]:
    """Return the questions; the first is the identity. project: Google's, unused here."""
    reader = AwsReader(cluster.spec.control_plane.region, ADVICE)
    used = uses(cluster.spec)
    account = Account(cluster, reader)
    return [
        *account_questions(account),
        *quota_questions(cluster, reader, used),
        *machine_questions(cluster, reader, used),
    ]
