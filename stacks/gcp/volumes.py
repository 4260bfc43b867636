"""Volumes of pods: the permissions of the drivers' controllers, and the stack's parameters for the classes.

Permissions are those of the methods that the drivers call ("IAM Permissions" in the references of the APIs, as collected
in iam-dataset). The disk driver's setup-project.sh requests roles/compute.storageAdmin, which covers all disks, images
and snapshots, and roles/iam.serviceAccountUser, by which it could impersonate any identity of the project: it has neither
here. None has been tried with a real project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.storage import controllers_pool, has_block, has_file
from components.control_plane import csi
from stacks.gcp import confinement
from stacks.gcp.keys import Keys
from stacks.gcp.network import Network
from stacks.gcp.readers import CONTROLLERS
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import generated, role_id

VOLUMES = "pvc-"
"""Prefix of the names of disks that the driver creates (`--volume-name-prefix` of external-provisioner)."""
OPERATORS = 3
"""Logical operators of the condition, without those between the pools' names."""
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
    """Return the address range of file systems: part of the plan, outside all subnetworks. It is the second eighth, which
    no role uses (`cluster.subnets`)."""
    return list(cluster.spec.network.nodes.subnets(3))[1]


def permissions(cluster: Cluster) -> tuple[str, ...]:
    return tuple(sorted((*(_DISKS if has_block(cluster.spec) else ()), *(_FILES if has_file(cluster.spec) else ()))))


def confined(cluster: Cluster, pools: Iterable[str]) -> str:
    """Return the condition of these permissions: only disks of pods, and only machines of these pools.

    Both are recognised by name ("Resource attributes in IAM Conditions": values and names of Compute Engine; other kinds are
    permitted, as in "Configure resource-based access"). Filestore has no such attributes: with `storage.file` the permissions
    apply to all file systems of the project.
    """
    disks = f'resource.name.extract("/disks/{{name}}").startsWith("{VOLUMES}")'
    return f"({_is_not('Disk')} || {disks}) && ({_is_not('Instance')} || {confinement.of_machines(cluster, pools)})"


def _is_not(kind: str) -> str:
    return f'resource.type != "compute.googleapis.com/{kind}"'


class Volumes(pulumi.ComponentResource):
    """A role of the cluster, for the identity of one pool."""

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
        for ending, pools in confinement.parts(cluster, OPERATORS):
            gcp.projects.IAMMember(
                confinement.name_of(cluster, "volumes", ending),
                project=keys.project,
                role=role.name,
                member=identities[CONTROLLERS].account.member,
                condition=gcp.projects.IAMMemberConditionArgs(
                    title=confinement.title("volumes", pools), expression=confined(cluster, pools)
                ),
                opts=own,
            )
        self.register_outputs({})


def classes(cluster: Cluster, keys: Keys, network: Network) -> pulumi.Output[str] | None:
    """Return what API servers apply; None without drivers."""
    if controllers_pool(cluster.spec) is None:
        return None

    def text(values: Mapping[str, str]) -> str:
        block = {"disk-encryption-kms-key": values["key"]}
        file = {
            "network": values["network"],
            "instance-encryption-kms-key": values["key"],
            "reserved-ipv4-cidr": str(file_range(cluster)),
        }
        spec = cluster.spec
        return csi.storage_classes(
            cluster, ({"block": block} if has_block(spec) else {}) | ({"file": file} if has_file(spec) else {})
        )

    return pulumi.Output.all(key=keys.key.id, network=network.network.id).apply(text)
