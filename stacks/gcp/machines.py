"""The program by which API servers check whether a machine belongs to the cluster's pools before it joins as a node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from stacks import machines
from stacks.gcp import confinement
from stacks.gcp.keys import Keys
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import generated, role_id

PERMISSIONS = ("compute.instances.get",)
OPERATORS = 1
"""Logical operators of the condition, without those between the pools' names."""
_PROGRAM = Path(__file__).with_name("menagerie_machine.py")


def program(
    cluster: Cluster, url: str = "https://compute.googleapis.com", metadata: str = "http://169.254.169.254"
) -> str:
    """Return the program's text. URLs have no trailing slash."""
    zones = {zone for pool in cluster.spec.region_pools.values() for zone in cluster.spec.zones_of(pool)}
    values = {
        "ZONES_OF_POOLS": " ".join(sorted(zones)),
        "CLUSTER_NAME": cluster.name,
        "COMPUTE_URL": url,
        "METADATA_URL": metadata,
    }
    return machines.filled(_PROGRAM, values)


def confined(cluster: Cluster, pools: Iterable[str]) -> str:
    """Return the condition of the permission: machines of these pools, by name ("Resource attributes in IAM Conditions")."""
    return f'resource.type == "compute.googleapis.com/Instance" && ({confinement.of_machines(cluster, pools)})'


class Machines(pulumi.ComponentResource):
    """A role of the cluster, for the identity of API servers."""

    def __init__(self, cluster: Cluster, keys: Keys, identity: Identity, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Machines", f"{cluster.name}-machines", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        role = gcp.projects.IAMCustomRole(
            generated(cluster, "machines"),
            role_id=role_id(cluster.name, "machines"),
            title=f"{cluster.name}: machines"[:100],
            permissions=list(PERMISSIONS),
            opts=own,
        )
        for ending, pools in confinement.parts(cluster, OPERATORS):
            granted = gcp.projects.IAMMember(
                confinement.name_of(cluster, "machines", ending),
                project=keys.project,
                role=role.name,
                member=identity.account.member,
                condition=gcp.projects.IAMMemberConditionArgs(
                    title=confinement.title("machines", pools), expression=confined(cluster, pools)
                ),
                opts=own,
            )
            identity.after.append(granted)
        self.register_outputs({})
