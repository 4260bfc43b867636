"""Names, tags, the resource groups, and the provider object of the cluster.

Everything is in one resource group with the cluster's name, and workers in a second one, so the names inside only
distinguish roles, and a cluster's name is never too long. Most are generated: the provider appends eight digits to the
logical name, so that a replacement can exist next to the resource it replaces. Members of etcd, their disks and scale
sets keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pulumi
import pulumi_azure_native as azure

from cluster import places
from cluster.pools import Pool
from cluster.spec import Cloud, Cluster
from cluster.tags import of_cluster
from stacks.names import short
from stacks.protection import is_protected

GENERATED = 8
"""Digits that the provider appends to a name."""
_LONGEST_IN_THE_WORLD = 24 - GENERATED
"""Of vaults and storage accounts, whose names are global (`cluster/catalogue/azure.yaml`)."""
_LONGEST_SCALE_SET = 64
_LONGEST_PREFIX = 15
""""Virtual Machine Scale Sets - Create Or Update": computerNamePrefix has 1 to 15 characters."""
_DIGITS = 5
"""Of a hash, in a name this short."""
_TEMPLATE = "k8s.io_cluster-autoscaler_node-template"


def provider(cluster: Cluster) -> azure.Provider:
    """Return Azure in the cluster's region; subscription and credentials come from the environment."""
    return azure.Provider(f"{cluster.name}-azure", location=cluster.spec.control_plane.region)


def group(cluster: Cluster, opts: pulumi.ResourceOptions) -> azure.resources.ResourceGroup:
    """Create the cluster's resource group. Deleting it deletes everything in it, even protected resources."""
    return _group("group", cluster.name, cluster, opts)


def workers_group(cluster: Cluster, opts: pulumi.ResourceOptions) -> azure.resources.ResourceGroup:
    """Create the resource group of workers in the region and of volumes. Cluster names contain no underscore, so no other
    cluster's group can have its name."""
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
    """Return tags by which bills, audits and people at the portal can attribute a resource."""
    return {**of_cluster(cluster.name), "role": role}


def vault_name(cluster: Cluster) -> str:
    """Return a prefix: letters, digits and single hyphens, a letter first. The rest is generated: a deleted vault keeps its name for 90 days."""
    text = re.sub(r"-+", "-", cluster.name)
    text = text if text[0].isalpha() else f"m{text}"
    return text[: _LONGEST_IN_THE_WORLD - 1].rstrip("-") + "-"


def account_name(cluster: Cluster) -> str:
    """Return a prefix of letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", cluster.name)[:_LONGEST_IN_THE_WORLD]


def files_name(cluster: Cluster) -> str:
    """Return the name of the account for shared file systems: letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", cluster.name)[: _LONGEST_IN_THE_WORLD - len("files")] + "files"


def scale_set_name(pool: str) -> str:
    return short(f"pool-{pool}", _LONGEST_SCALE_SET)


def host_prefix(pool: str) -> str:
    """Return the prefix of the names of a pool's hosts and their nodes."""
    return short(pool, _LONGEST_PREFIX - 1, _DIGITS) + "-"


def autoscaler_tags(cluster: Cluster, name: str, pool: Pool) -> Mapping[str, str]:
    """Return tags by which the cluster autoscaler finds a pool and knows its nodes before it has any.

    Tag names have no slash: its page "Cluster Autoscaler on Azure" replaces it with an underscore, and an underscore with
    ~2. `cluster.check.azure` counts them.
    """
    tags_ = {
        "cluster-autoscaler-enabled": "true",
        "cluster-autoscaler-name": cluster.name,
        "min": str(pool.min),
        "max": str(pool.max),
    }
    labels = places.of_pool(Cloud.AZURE, name, pool)
    tags_ |= {f"{_TEMPLATE}_label_{_in_tag(key)}": value for key, value in labels.items()}
    tags_ |= {f"{_TEMPLATE}_taint_{_in_tag(taint.key)}": f"{taint.value}:{taint.effect.value}" for taint in pool.taints}
    return tags_


def _in_tag(key: str) -> str:
    return key.replace("_", "~2").replace("/", "_")
