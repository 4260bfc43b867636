"""Volumes of pods: the rights of the drivers' controllers, and what only the stack knows of the classes.

Permissions are those of the methods that the drivers call ("IAM Permissions" in the references of the APIs, as collected
in iam-dataset). The disks' driver asks in its setup-project.sh for roles/compute.storageAdmin, which is on all disks,
images and snapshots, and for roles/iam.serviceAccountUser, by which it could become any identity of the project: it has
neither here. None has been tried with a real project.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.storage import controllers_pool, has_block, has_file
from components.control_plane import csi
from stacks.gcp.keys import Keys
from stacks.gcp.network import Network
from stacks.gcp.readers import CONTROLLERS
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import base_name, condition_title, generated, role_id

VOLUMES = "pvc-"
"""What names of disks begin with that the driver makes (`--volume-name-prefix` of external-provisioner)."""
_DISKS = (
    *(f"compute.disks.{verb}" for verb in ("create", "delete", "get", "list", "resize", "setLabels", "update", "use")),
    *(f"compute.instances.{verb}" for verb in ("attachDisk", "detachDisk", "get", "list")),
    *("compute.diskTypes.get", "compute.regions.get", "compute.zoneOperations.get", "compute.zones.list"),
)
_FILES = (
    *(f"file.instances.{verb}" for verb in ("create", "delete", "get", "list", "update")),
    *("file.locations.get", "file.locations.list", "file.operations.get"),
)


def file_range(cluster: Cluster) -> IPv4Network:
    """Where file systems have their addresses: of the plan, and in no subnetwork. The second of its eighths, which
    no role has (`cluster.subnets`)."""
    return list(cluster.spec.network.nodes.subnets(3))[1]


def permissions(cluster: Cluster) -> tuple[str, ...]:
    return tuple(sorted((*(_DISKS if has_block(cluster.spec) else ()), *(_FILES if has_file(cluster.spec) else ()))))


def _pools(cluster: Cluster) -> list[str]:
    return [name for name, pool in cluster.spec.pools.items() if pool.site is None]


def _title(cluster: Cluster) -> str:
    """Another one for other pools: what replaces a grant stands beside it, and both are told apart by their titles."""
    return condition_title(f"volumes of {', '.join(_pools(cluster))}")


def confined(cluster: Cluster) -> str:
    """The condition on these rights: only disks of pods, and only machines of the cluster's pools.

    Both are known by their names ("Resource attributes in IAM Conditions": values and names of Compute Engine; other
    kinds are let through, as "Configure resource-based access" has it). Filestore knows no such attributes: with
    `storage.file` the rights are on all file systems of the project.
    """
    pools = [base_name(cluster, name) for name in _pools(cluster)]
    machines = " || ".join(f'resource.name.extract("/instances/{{name}}").startsWith("{name}-")' for name in pools)
    disks = f'resource.name.extract("/disks/{{name}}").startsWith("{VOLUMES}")'
    return f"({_is_no('Disk')} || {disks}) && ({_is_no('Instance')} || {machines})"


def _is_no(kind: str) -> str:
    return f'resource.type != "compute.googleapis.com/{kind}"'


class Volumes(pulumi.ComponentResource):
    """One role of the cluster's own, for the identity of one pool."""

    def __init__(
        self, cluster: Cluster, keys: Keys, identities: Mapping[str, Identity], opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__("menagerie:gcp:Volumes", f"{cluster.name}-volumes", None, opts)
        own = pulumi.ResourceOptions(parent=self)
        role = gcp.projects.IAMCustomRole(
            generated(cluster, "volumes"),
            role_id=role_id(cluster.name, "volumes"),
            title=f"{cluster.name}: volumes"[:100],
            permissions=list(permissions(cluster)),
            opts=own,
        )
        gcp.projects.IAMMember(
            generated(cluster, "volumes"),
            project=keys.project,
            role=role.name,
            member=identities[CONTROLLERS].account.member,
            condition=gcp.projects.IAMMemberConditionArgs(title=_title(cluster), expression=confined(cluster)),
            opts=own,
        )
        self.register_outputs({})


def classes(cluster: Cluster, keys: Keys, network: Network) -> pulumi.Output[str] | None:
    """What API servers apply; None without drivers."""
    if controllers_pool(cluster.spec) is None:
        return None

    def text(known: Mapping[str, str]) -> str:
        block = {"disk-encryption-kms-key": known["key"]}
        file = {
            "network": known["network"],
            "instance-encryption-kms-key": known["key"],
            "reserved-ipv4-cidr": str(file_range(cluster)),
        }
        spec = cluster.spec
        return csi.storage_classes(
            cluster, ({"block": block} if has_block(spec) else {}) | ({"file": file} if has_file(spec) else {})
        )

    return pulumi.Output.all(key=keys.key.id, network=network.network.id).apply(text)
