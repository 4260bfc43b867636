"""Names and tags, and the provider object of the cluster.

If AWS requires a name and the program gives none, the provider appends a hyphen and seven digits to the resource's name:
so a replacement can exist next to the resource it replaces. Names that could become too long are shortened here.
"""

from __future__ import annotations

from typing import Literal

import pulumi_aws as aws

from cluster import catalogue
from cluster.spec import Cloud, Cluster
from cluster.tags import of_cluster
from stacks.names import short

_GENERATED = 8
_LONGEST_BUCKET = 63
_LONGEST_TAG_KEY, _LONGEST_TAG_VALUE, _MOST_TAGS = 128, 256, 50
""""Tag your Amazon EC2 resources": restrictions."""

Kind = Literal["load_balancer", "target_group", "launch_template", "role"]
"""Resources with a limited name length: as in the catalogue. A group has its template's name, a profile its role's."""


def provider(cluster: Cluster) -> aws.Provider:
    """Return AWS in the cluster's region; the provider tags everything with the cluster."""
    return aws.Provider(
        f"{cluster.name}-aws",
        region=cluster.spec.control_plane.region,
        default_tags=aws.ProviderDefaultTagsArgs(tags=of_cluster(cluster.name)),
    )


def tags(cluster: Cluster, role: str, place: str = "") -> dict[str, str]:
    """Return tags in addition to the provider's. place: distinguishes resources of one role, such as the zone."""
    return {"Name": "-".join(filter(None, (cluster.name, role, place))), "role": role}


def whole_tags(cluster: Cluster, role: str, place: str = "") -> dict[str, str]:
    """Return all tags, for resources that don't get the provider's: groups, and what templates create."""
    return {**of_cluster(cluster.name), **tags(cluster, role, place)}


def group_tags(tags_: dict[str, str]) -> list[aws.autoscaling.GroupTagArgs]:
    """Return tags of the group only: its machines have their template's."""
    return [
        aws.autoscaling.GroupTagArgs(key=key, value=value, propagate_at_launch=False) for key, value in tags_.items()
    ]


def named(cluster: Cluster, role: str, kind: Kind) -> str:
    """Return the program's name of a resource of a kind, shortened if necessary."""
    return short(f"{cluster.name}-{role}", catalogue.of(Cloud.AWS).names[kind].max - _GENERATED)


def bucket(cluster: Cluster, use: str, account: str) -> str:
    """Return a bucket's name. Bucket names are global, so it includes the account's number."""
    return f"{short(cluster.name, _LONGEST_BUCKET - len(use) - len(account) - 2)}-{use}-{account}"


def refuse_too_many(what: str, tags_: dict[str, str]) -> None:
    """Raise ValueError for tags that AWS does not accept."""
    too_long = [key for key, value in tags_.items() if len(key) > _LONGEST_TAG_KEY or len(value) > _LONGEST_TAG_VALUE]
    if too_long:
        raise ValueError(
            f"{what}: {too_long[0]} becomes a tag of AWS, whose key may have {_LONGEST_TAG_KEY} characters and its value "
            f"{_LONGEST_TAG_VALUE}; shorten the label or taint"
        )
    if len(tags_) > _MOST_TAGS:
        raise ValueError(
            f"{what}: labels and taints become {len(tags_)} tags, but AWS permits {_MOST_TAGS}; remove some"
        )
