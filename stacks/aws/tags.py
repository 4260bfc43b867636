"""Names and tags, and the provider object of the cluster.

The provider adds a hyphen and seven digits to the name of a resource, where AWS wants a name and the program gives none:
a replacement can then stand beside what it replaces. Names that could grow too long with that are made shorter here.
"""

from __future__ import annotations

from typing import Literal

import pulumi_aws as aws

from cluster import catalogue
from cluster.spec import Cloud, Cluster
from stacks.names import short

_GENERATED = 8
_LONGEST_BUCKET = 63
_LONGEST_TAG_KEY, _LONGEST_TAG_VALUE, _MOST_TAGS = 128, 256, 50
""""Tag your Amazon EC2 resources": restrictions."""

Kind = Literal["load_balancer", "target_group", "launch_template", "role"]
"""Of resources whose names are short: as in the catalogue. A group has its template's name, a profile its role's."""


def provider(cluster: Cluster) -> aws.Provider:
    """AWS in the cluster's region; whatever it makes is tagged with the cluster."""
    return aws.Provider(
        f"{cluster.name}-aws",
        region=cluster.spec.control_plane.region,
        default_tags=aws.ProviderDefaultTagsArgs(tags=_of_all(cluster)),
    )


def tags(cluster: Cluster, role: str, place: str = "") -> dict[str, str]:
    """Tags beside those of the provider. place: what tells apart those of one role, such as the zone."""
    return {"Name": "-".join(filter(None, (cluster.name, role, place))), "role": role}


def whole_tags(cluster: Cluster, role: str, place: str = "") -> dict[str, str]:
    """All of them, for what the provider's own do not reach: groups, and what templates make."""
    return {**_of_all(cluster), **tags(cluster, role, place)}


def group_tags(found: dict[str, str]) -> list[aws.autoscaling.GroupTagArgs]:
    """Of the group alone: its machines have their template's."""
    return [
        aws.autoscaling.GroupTagArgs(key=key, value=value, propagate_at_launch=False) for key, value in found.items()
    ]


def _of_all(cluster: Cluster) -> dict[str, str]:
    return {"menagerie": "true", "cluster": cluster.name}


def named(cluster: Cluster, role: str, kind: Kind) -> str:
    """The program's name of a resource of a kind, whole or shortened."""
    return short(f"{cluster.name}-{role}", catalogue.of(Cloud.AWS).names[kind].max - _GENERATED)


def bucket(cluster: Cluster, use: str, account: str) -> str:
    """Everybody's buckets have their names in one space, so the account's number is in it."""
    return f"{short(cluster.name, _LONGEST_BUCKET - len(use) - len(account) - 2)}-{use}-{account}"


def refuse_too_many(what: str, found: dict[str, str]) -> None:
    """ValueError for tags that AWS does not take."""
    wrong = [key for key, value in found.items() if len(key) > _LONGEST_TAG_KEY or len(value) > _LONGEST_TAG_VALUE]
    if wrong:
        raise ValueError(
            f"{what}: {wrong[0]} becomes a tag of AWS, whose key may have {_LONGEST_TAG_KEY} characters and its value "
            f"{_LONGEST_TAG_VALUE}; shorten the label or taint"
        )
    if len(found) > _MOST_TAGS:
        raise ValueError(
            f"{what}: labels and taints come to {len(found)} tags, and AWS takes {_MOST_TAGS}; remove some"
        )
