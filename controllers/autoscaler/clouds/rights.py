"""The least rights that the autoscaler needs in each cloud, as documents for the clouds' own tools.

The copies in docs/ are for a cluster with the name CLUSTER, to be replaced.
"""

from __future__ import annotations

from controllers.autoscaler.clouds.aws import rights as aws
from controllers.autoscaler.clouds.azure import rights as azure
from controllers.autoscaler.clouds.gcp import rights as gcp


def documents(cluster: str) -> dict[str, str]:
    """Return name of a file in docs/ -> its text."""
    return {aws.FILE: aws.document(cluster), azure.FILE: azure.document(cluster), gcp.FILE: gcp.document()}
