"""The questions about a subscription of Azure. docs/how-to/doctor.md describes each."""

from __future__ import annotations

from clients.clouds.azure_reader import AzureReader
from cluster.needs import uses
from cluster.spec import Cluster
from operations.doctor.azure.account import account_questions
from operations.doctor.azure.machines import Region, machine_questions
from operations.doctor.model import Question

ADVICE = (
    "run `az login` and `az account set --subscription <id>`, or set ARM_CLIENT_ID, ARM_CLIENT_SECRET, ARM_TENANT_ID and "
    "ARM_SUBSCRIPTION_ID"
)


def questions(cluster: Cluster, project: str) -> list[Question]:
    """Return the questions; the first is the identity. project: Google's, unused here."""
    reader = AzureReader(ADVICE)
    region = Region(cluster, reader, uses(cluster.spec))
    return [*account_questions(cluster, reader), *machine_questions(region)]
