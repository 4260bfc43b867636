"""What an etcd needs at its cluster's size: rules for the spec and for the disks of the stack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cluster.spec import Cluster, EtcdCluster, EtcdHosts, Profile, RoleName
from stacks.policies.model import Resource, Rule, Severity, Violation, of_spec
from stacks.policies.values import first, is_hidden, of_types

LOCAL = "local-nvme"

EVENTS_APART_ABOVE = 1000
"""Nodes. OpenAI, "Scaling Kubernetes to 2,500 nodes": at about 1,000 nodes, they moved events to a separate etcd, so that
a spike of events slows down nothing else. Kubespray ("Large deployments of K8s", whose example has 200 nodes) advises a
second etcd for them, on the hosts of main; our clusters have that at any size, with a separate disk."""

HEAVY_ABOVE = 500
"""Nodes. OpenAI, "Scaling Kubernetes to 2,500 nodes": above 500 nodes a network disk was too slow for etcd. etcd's
"Hardware recommendations" define a medium cluster as one with up to 500 clients."""
_PUBLISHED_PER_SEQUENTIAL = 10
"""etcd, "Hardware recommendations": the operations that clouds publish can be ten times the sequential ones, and etcd's
are sequential. OpenAI observed the same: etcd could use 10 % of the 5,000 of a P30."""
LEAST_IOPS = 50 * _PUBLISHED_PER_SEQUENTIAL
"""etcd, "Hardware recommendations": 50 sequential operations a second are required."""
HEAVY_IOPS = 500 * _PUBLISHED_PER_SEQUENTIAL
"""Same source: 500 are recommended for heavily loaded clusters."""

BOUGHT: Mapping[str, str] = {
    "aws:ebs/volume:Volume": "iops",
    "azure-native:compute:Disk": "diskIOPSReadWrite",
    "gcp:compute/disk:Disk": "provisionedIops",
}
"""Type of a disk -> property with its provisioned operations per second."""


def max_nodes(cluster: Cluster) -> int:
    """Return how many nodes a cluster can grow to."""
    return cluster.spec.cloud_workers + len(cluster.host_list())


def least_iops(cluster: Cluster) -> int:
    return HEAVY_IOPS if max_nodes(cluster) > HEAVY_ABOVE else LEAST_IOPS


def _severity(cluster: Cluster) -> Severity:
    return "error" if cluster.spec.profile is Profile.PRODUCTION else "warning"


def _events_apart(cluster: Cluster, _: Sequence[Resource]) -> Iterator[Violation]:
    if cluster.spec.etcd.events.hosts is EtcdHosts.MAIN and max_nodes(cluster) > EVENTS_APART_ABOVE:
        yield Violation(
            "etcd-events-apart",
            of_spec(cluster),
            f"etcd.events is on the hosts of main, and the cluster can grow to {max_nodes(cluster)} nodes; a storm of "
            "events takes disk and CPU from everything else",
            "write etcd.events.hosts: dedicated",
            _severity(cluster),
            ("etcd", "events", "hosts"),
        )


def _backed_up(cluster: Cluster, _: Sequence[Resource]) -> Iterator[Violation]:
    main = cluster.spec.etcd.main
    if main.disk == LOCAL and main.backup is None and not cluster.is_lab:
        yield Violation(
            "etcd-backed-up",
            of_spec(cluster),
            "etcd.main is on local disks, which are lost with their machines, and has no backup",
            "write etcd.main.backup: {every: 15m, keep: 30d}, or use a network disk",
            _severity(cluster),
            ("etcd", "main"),
        )


def _fast(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    floor = least_iops(cluster)
    roles: tuple[tuple[RoleName, EtcdCluster], ...] = (
        ("main", cluster.spec.etcd.main),
        ("events", cluster.spec.etcd.events),
    )
    for role, etcd in roles:
        if etcd.disk == LOCAL or cluster.is_lab:
            continue
        if etcd.iops < floor:
            yield _slow(cluster, of_spec(cluster), f"etcd.{role}.iops is {etcd.iops}", role, floor)
        for disk in of_types(resources, BOUGHT):
            bought = first(disk.inputs, BOUGHT[disk.type])
            least = max(floor, etcd.iops)
            if _is_of(disk, role) and bought is not None and not is_hidden(bought) and int(bought) < least:
                yield _slow(
                    cluster, disk, f"{disk.type} {disk.name} has {int(bought)} operations per second", role, least
                )


def _is_of(disk: Resource, role: RoleName) -> bool:
    return bool(re.search(rf"etcd-{role}-\d+", disk.name))


def _slow(cluster: Cluster, resource: Resource, what: str, role: RoleName, least: int) -> Violation:
    return Violation(
        "etcd-iops",
        resource,
        f"{what}; at {max_nodes(cluster)} nodes etcd {role} needs {least}",
        f"write etcd.{role}.iops: {least} or more, or disk: {LOCAL}",
        _severity(cluster),
        ("etcd", role, "iops"),
    )


RULES = (
    Rule(
        "etcd-events-apart",
        f"Above {EVENTS_APART_ABOVE} nodes, etcd events has dedicated hosts.",
        _events_apart,
        'OpenAI, "Scaling Kubernetes to 2,500 nodes". Up to that size, events have a separate process and disk on the '
        "hosts of main.",
    ),
    Rule(
        "etcd-backed-up",
        "An etcd main on local disks has backups.",
        _backed_up,
        "Local disks are lost with their machines. Losing events does no harm.",
    ),
    Rule(
        "etcd-iops",
        f"Network disks of etcd have at least {LEAST_IOPS} operations per second, above {HEAVY_ABOVE} nodes "
        f"{HEAVY_IOPS}, and at least as many as the spec says.",
        _fast,
        'etcd, "Hardware recommendations": at least 50 sequential operations per second, 500 for heavily loaded '
        'clusters, and clouds publish up to ten times the sequential operations; OpenAI, "Scaling Kubernetes to '
        '2,500 nodes": problems started at 500 nodes.',
    ),
)
