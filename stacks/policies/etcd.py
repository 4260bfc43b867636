"""What an etcd needs at the size of its cluster: rules of the spec, and of the disks that were made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cluster.spec import Cluster, EtcdCluster, EtcdHosts, Profile, RoleName
from stacks.policies.model import Resource, Rule, Severity, Violation, of_spec
from stacks.policies.values import first, is_hidden, of_types

LOCAL = "local-nvme"

EVENTS_APART_ABOVE = 1000
"""Nodes. OpenAI, "Scaling Kubernetes to 2,500 nodes": at about 1,000 nodes, events were given an etcd of their own, so
that a spike of them slows nothing else. Kubespray ("Large deployments of K8s", whose example has 200 nodes) advises a
second etcd for them, on the hosts of main; a cluster of ours has that at any size, with a disk of its own."""

HEAVY_ABOVE = 500
"""Nodes. OpenAI, "Scaling Kubernetes to 2,500 nodes": past 500 nodes a network disk was too slow for etcd. etcd's
"Hardware recommendations" end a medium cluster at 500 clients."""
_PUBLISHED_PER_SEQUENTIAL = 10
"""etcd, "Hardware recommendations": the operations that clouds publish can be ten times those that follow each other,
and etcd's do. OpenAI saw the same: of 5,000 on a P30, etcd could use 10 %."""
LEAST_IOPS = 50 * _PUBLISHED_PER_SEQUENTIAL
"""etcd, "Hardware recommendations": 50 sequential operations a second are required."""
HEAVY_IOPS = 500 * _PUBLISHED_PER_SEQUENTIAL
"""The same: 500 are recommended for heavily loaded clusters."""

BOUGHT: Mapping[str, str] = {
    "aws:ebs/volume:Volume": "iops",
    "azure-native:compute:Disk": "diskIOPSReadWrite",
    "gcp:compute/disk:Disk": "provisionedIops",
}
"""Type of a disk -> how many operations a second it was bought with."""


def nodes(cluster: Cluster) -> int:
    """That a cluster can grow to."""
    return cluster.spec.cloud_workers + len(cluster.host_list())


def least_iops(cluster: Cluster) -> int:
    return HEAVY_IOPS if nodes(cluster) > HEAVY_ABOVE else LEAST_IOPS


def _severity(cluster: Cluster) -> Severity:
    return "error" if cluster.spec.profile is Profile.PRODUCTION else "warning"


def _events_apart(cluster: Cluster, _: Sequence[Resource]) -> Iterator[Violation]:
    if cluster.spec.etcd.events.hosts is EtcdHosts.MAIN and nodes(cluster) > EVENTS_APART_ABOVE:
        yield Violation(
            "etcd-events-apart",
            of_spec(cluster),
            f"etcd.events is on the hosts of main, and the cluster can grow to {nodes(cluster)} nodes; a storm of "
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
            "etcd.main is on local disks, which end with their machines, and has no backup",
            "write etcd.main.backup: {every: 15m, keep: 30d}, or take a network disk",
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
                    cluster, disk, f"{disk.type} {disk.name} has {int(bought)} operations a second", role, least
                )


def _is_of(disk: Resource, role: RoleName) -> bool:
    return bool(re.search(rf"etcd-{role}-\d+", disk.name))


def _slow(cluster: Cluster, resource: Resource, what: str, role: RoleName, least: int) -> Violation:
    return Violation(
        "etcd-iops",
        resource,
        f"{what}; at {nodes(cluster)} nodes etcd {role} needs {least}",
        f"write etcd.{role}.iops: {least} or more, or disk: {LOCAL}",
        _severity(cluster),
        ("etcd", role, "iops"),
    )


RULES = (
    Rule(
        "etcd-events-apart",
        f"Above {EVENTS_APART_ABOVE} nodes, the etcd of events has hosts of its own.",
        _events_apart,
        'OpenAI, "Scaling Kubernetes to 2,500 nodes". Below, events have a process and a disk of their own on the '
        "hosts of main.",
    ),
    Rule(
        "etcd-backed-up",
        "An etcd main on local disks has backups.",
        _backed_up,
        "Local disks end with their machines. Events may be lost without harm.",
    ),
    Rule(
        "etcd-iops",
        f"Network disks of etcd are bought with {LEAST_IOPS} operations a second, above {HEAVY_ABOVE} nodes with "
        f"{HEAVY_IOPS}, and with what the spec says.",
        _fast,
        'etcd, "Hardware recommendations": 50 sequential operations a second at least, 500 for heavily loaded '
        'clusters, and clouds publish up to ten times as many as follow each other; OpenAI, "Scaling Kubernetes to '
        '2,500 nodes": trouble began at 500 nodes.',
    ),
)
