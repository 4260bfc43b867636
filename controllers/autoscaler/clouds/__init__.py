"""The groups of machines that `stacks/` makes in a cloud, as the autoscaler sees them (`controllers/autoscaler/groups.py`).

The clouds' own libraries are used. A group is identified by the names of the cluster and the pool, which the stack writes on it. A
group that lacks one of them is not ours. docs/how-to/autoscaler-clouds.md describes this and the required rights.
"""

from __future__ import annotations

import logging

from cluster.spec import Cloud, Cluster
from controllers.autoscaler.clouds.common import Names
from controllers.autoscaler.groups import GroupError, Groups

_LIBRARIES = ("azure", "botocore", "google.auth", "msal")


def groups_of(cluster: Cluster, names: Names) -> Groups:
    """Return the groups of the cluster's pools in the region. Sends no request yet. Errors: raises GroupError for the lab.

    Only this function imports a cloud's folder and so its library, which takes up to 150 MB and seconds to load.
    """
    for library in _LIBRARIES:
        # They also log tracebacks of what they raise: for an expired login, in every pass.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    cloud = cluster.spec.control_plane.cloud
    if cloud is Cloud.AWS:
        from controllers.autoscaler.clouds.aws.groups import AwsGroups  # noqa: PLC0415 - extra: aws

        return AwsGroups(cluster, names)
    if cloud is Cloud.AZURE:
        from controllers.autoscaler.clouds.azure.groups import AzureGroups  # noqa: PLC0415 - extra: azure

        return AzureGroups(cluster, names)
    if cloud is Cloud.GCP:
        from controllers.autoscaler.clouds.gcp.groups import GcpGroups  # noqa: PLC0415 - extra: gcp

        return GcpGroups(cluster, names)
    raise GroupError(f"{cloud} has no groups of machines")
