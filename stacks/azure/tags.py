"""Names, tags, the resource group, and the provider object of the cluster.

Everything is in one resource group that has the cluster's name, and workers in one beside it, so the names inside
tell roles only, and a cluster's name is never too long. Most are generated: the provider adds eight digits to the
logical name, so that a replacement can stand beside what it replaces. Members of etcd, their disks and scale sets keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pulumi
import pulumi_azure_native as azure

from cluster import places
from cluster.pools import Pool
from cluster.spec import Cloud, Cluster
from stacks.names import short
from stacks.protection import is_protected

GENERATED = 8
"""Digits that the provider adds to a name."""
_LONGEST_IN_THE_WORLD = 24 - GENERATED
"""Of vaults and storage accounts, whose names are everybody's (`cluster/catalogue/azure.yaml`)."""
_LONGEST_SCALE_SET = 64
_LONGEST_PREFIX = 15
""""Virtual Machine Scale Sets - Create Or Update": computerNamePrefix has 1 to 15 characters."""
_DIGITS = 5
"""Of a hash, in so short a name."""
_TEMPLATE = "k8s.io_cluster-autoscaler_node-template"


def provider(cluster: Cluster) -> azure.Provider:
    """Azure in the cluster's region; subscription and credentials come from the environment."""
    return azure.Provider(f"{cluster.name}-azure", location=cluster.spec.control_plane.region)


def group(cluster: Cluster, opts: pulumi.ResourceOptions) -> azure.resources.ResourceGroup:
    """Its deletion takes everything in it along, what is protected too."""
    return _group("group", cluster.name, cluster, opts)


def workers_group(cluster: Cluster, opts: pulumi.ResourceOptions) -> azure.resources.ResourceGroup:
    """Of workers in the region and of volumes. No cluster's name has an underscore, so no other cluster's group has this
    one's name."""
    return _group("workers-group", workers_group_name(cluster), cluster, opts)


def workers_group_name(cluster: Cluster) -> str:
    return f"{cluster.name}_workers"


def _group(logical: str, name: str, cluster: Cluster, opts: pulumi.ResourceOptions) -> azure.resources.ResourceGroup:
    return azure.resources.ResourceGroup(
        logical,
        resource_group_name=name,
        tags=tags(cluster, logical),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=is_protected())),
    )


def tags(cluster: Cluster, role: str) -> dict[str, str]:
    """So that a bill, an audit or a person at the portal can tell whose it is."""
    return {"menagerie": "true", "cluster": cluster.name, "role": role}


def vault_name(cluster: Cluster) -> str:
    """Letters, digits and single hyphens, a letter first. Generated, for a deleted vault keeps its name for 90 days."""
    text = re.sub(r"-+", "-", cluster.name)
    text = text if text[0].isalpha() else f"m{text}"
    return text[: _LONGEST_IN_THE_WORLD - 1].rstrip("-") + "-"


def account_name(cluster: Cluster) -> str:
    """Letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", cluster.name)[:_LONGEST_IN_THE_WORLD]


def files_name(cluster: Cluster) -> str:
    """Of the account for shared file systems: letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", cluster.name)[: _LONGEST_IN_THE_WORLD - len("files")] + "files"


def scale_set_name(pool: str) -> str:
    return short(f"pool-{pool}", _LONGEST_SCALE_SET)


def host_prefix(pool: str) -> str:
    """What the names of a pool's hosts, and of their nodes, begin with."""
    return short(pool, _LONGEST_PREFIX - 1, _DIGITS) + "-"


def autoscaler_tags(cluster: Cluster, name: str, pool: Pool) -> Mapping[str, str]:
    """By which the cluster autoscaler finds a pool and knows its nodes before it has one.

    Names of tags have no slash: its page "Cluster Autoscaler on Azure" writes an underscore for it, and ~2 for an
    underscore. `cluster.check.azure` counts them.
    """
    found = {
        "cluster-autoscaler-enabled": "true",
        "cluster-autoscaler-name": cluster.name,
        "min": str(pool.min),
        "max": str(pool.max),
    }
    labels = places.of_pool(Cloud.AZURE, name, pool)
    found |= {f"{_TEMPLATE}_label_{_in_tag(key)}": value for key, value in labels.items()}
    found |= {f"{_TEMPLATE}_taint_{_in_tag(taint.key)}": f"{taint.value}:{taint.effect.value}" for taint in pool.taints}
    return found


def _in_tag(key: str) -> str:
    return key.replace("_", "~2").replace("/", "_")
