"""The groups of machines that `stacks/` makes in a cloud, as the autoscaler sees them (`controllers/autoscaler/groups.py`).

By the clouds' own libraries. A group is known by what the stack wrote on it: the cluster's name and the pool's. What lacks
one of them belongs to somebody else. docs/how-to/autoscaler-clouds.md says how, and with which rights.
"""

from __future__ import annotations

import logging

from cluster.spec import Cloud, Cluster
from controllers.autoscaler.clouds.common import Names
from controllers.autoscaler.groups import GroupError, Groups

_LIBRARIES = ("azure", "botocore", "google.auth", "msal")


def groups_of(cluster: Cluster, names: Names) -> Groups:
    """The groups of the cluster's pools in the region. Asks nothing yet. GroupError in the lab, which has others.

    The only place that imports a cloud's folder, and so its library: they take up to 150 MB and seconds to load.
    """
    for library in _LIBRARIES:
        # They log tracebacks of what they raise, too: of a login that ended, with every pass.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    cloud = cluster.spec.control_plane.cloud
    if cloud is Cloud.AWS:
        from controllers.autoscaler.clouds.aws.groups import AwsGroups

        return AwsGroups(cluster, names)
    if cloud is Cloud.AZURE:
        from controllers.autoscaler.clouds.azure.groups import AzureGroups

        return AzureGroups(cluster, names)
    if cloud is Cloud.GCP:
        from controllers.autoscaler.clouds.gcp.groups import GcpGroups

        return GcpGroups(cluster, names)
    raise GroupError(f"{cloud} is no cloud with groups of machines")
