"""The groups of machines that `stacks/` makes in a cloud, as the autoscaler sees them (`scheduling/autoscaler/groups.py`).

Over the clouds' own HTTP. A group is known by what the stack wrote on it, the cluster's name and the pool's; whatever lacks
one of them is somebody else's. docs/autoscaler-clouds.md says how, and with which rights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from cluster.spec import Cloud, Cluster
from scheduling.autoscaler.clouds.common import Names
from scheduling.autoscaler.clouds.http import Http
from scheduling.autoscaler.groups import GroupError, Groups


def groups_of(cluster: Cluster, names: Names, environment: Mapping[str, str] = os.environ) -> Groups:
    """The groups of the cluster's pools in the region. Nothing is asked yet. GroupError in the lab, which has others."""
    http, cloud = Http(), cluster.spec.control_plane.cloud
    if cloud is Cloud.AWS:
        from scheduling.autoscaler.clouds.aws.groups import AwsGroups

        return AwsGroups(cluster, http, names, environment)
    if cloud is Cloud.AZURE:
        from scheduling.autoscaler.clouds.azure.groups import AzureGroups

        return AzureGroups(cluster, http, names, environment)
    if cloud is Cloud.GCP:
        from scheduling.autoscaler.clouds.gcp.groups import GcpGroups

        return GcpGroups(cluster, http, names, environment)
    raise GroupError(f"{cloud} is no cloud with groups of machines")
