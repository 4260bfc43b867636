"""The questions about a project of Google Cloud. docs/how-to/doctor.md describes each."""

from __future__ import annotations

from clients.clouds.gcp_reader import GoogleReader
from cluster.needs import uses
from cluster.spec import Cluster
from operations.doctor.gcp.account import account_questions
from operations.doctor.gcp.machines import Region, machine_questions
from operations.doctor.model import Question

ADVICE = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a key"


def questions(cluster: Cluster, project: str) -> list[Question]:
    """Return the questions; the first is the identity. project: that the stack's configuration names, "" for none."""
    reader = GoogleReader(ADVICE, project)
    # While API servers are replaced, their group adds one for each zone.
    used = uses(cluster.spec, spare=len(cluster.spec.control_plane.zones))
    return [*account_questions(cluster, reader), *machine_questions(Region(cluster, reader, used))]
