"""The program by which API servers check whether a machine belongs to the cluster's pools before it joins as a node."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from stacks import machines
from stacks.gcp.keys import Keys
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import base_name, condition_title, generated, role_id

PERMISSIONS = ("compute.instances.get",)
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


def confined(cluster: Cluster) -> str:
    """Return the condition of the permission: machines of the cluster's pools, by name ("Resource attributes in IAM Conditions")."""
    names = [
        f'resource.name.extract("/instances/{{name}}").startsWith("{base_name(cluster, name)}-")'
        for name in cluster.spec.region_pools
    ]
    return f'resource.type == "compute.googleapis.com/Instance" && ({" || ".join(names)})'


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
        granted = gcp.projects.IAMMember(
            generated(cluster, "machines"),
            project=keys.project,
            role=role.name,
            member=identity.account.member,
            condition=gcp.projects.IAMMemberConditionArgs(
                title=condition_title(f"machines of {', '.join(cluster.spec.region_pools)}"),
                expression=confined(cluster),
            ),
            opts=own,
        )
        identity.after.append(granted)
        self.register_outputs({})
