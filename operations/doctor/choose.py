"""The questions about the account of a cluster's cloud."""

from __future__ import annotations

import logging

from cluster.spec import Cloud, Cluster
from operations.doctor.model import Question

_LIBRARIES = ("azure", "botocore", "google.auth", "msal", "urllib3")


def cloud_questions(cluster: Cluster, project: str) -> list[Question]:
    """Return the questions, the identity first; none for a lab. Sends no request yet. project: Google's, "" for none.

    Only this function imports a cloud's folder, and so its libraries. Errors: raises ModuleNotFoundError without the
    cloud's extra.
    """
    for library in _LIBRARIES:
        logging.getLogger(library).setLevel(logging.CRITICAL)  # they also log what they raise
    cloud = cluster.spec.control_plane.cloud
    if cloud is Cloud.AWS:
        from operations.doctor import aws  # noqa: PLC0415 - extra: aws

        return aws.questions(cluster, project)
    if cloud is Cloud.AZURE:
        from operations.doctor import azure  # noqa: PLC0415 - extra: azure

        return azure.questions(cluster, project)
    if cloud is Cloud.GCP:
        from operations.doctor import gcp  # noqa: PLC0415 - extra: gcp

        return gcp.questions(cluster, project)
    return []
