"""Tags on everything, so that a bill, an audit or a person at the console can tell whose it is."""

from __future__ import annotations

import pulumi_aws as aws

from cluster.spec import Cluster


def provider(cluster: Cluster) -> aws.Provider:
    """AWS in the cluster's region; whatever it makes is tagged with the cluster."""
    tags = {"menagerie": "true", "cluster": cluster.name}
    return aws.Provider(
        f"{cluster.name}-aws",
        region=cluster.spec.control_plane.region,
        default_tags=aws.ProviderDefaultTagsArgs(tags=tags),
    )


def tags(cluster: Cluster, role: str, place: str = "") -> dict[str, str]:
    """Tags beside those of the provider. place: what tells apart those of one role, such as the zone."""
    return {"Name": "-".join(filter(None, (cluster.name, role, place))), "role": role}
