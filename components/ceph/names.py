"""Names that Rook, nodes and teams know things by, and shapes that several resources share. No I/O."""

from __future__ import annotations

from cluster import preflight
from cluster.ceph import Ceph
from cluster.places import STORAGE_HOST
from cluster.spec import Cluster, ClusterSpec
from components.control_plane.objects import Object

NAMESPACE = CLUSTER = "rook-ceph"
"""Rook's release has its rights in this namespace; with the operator in it, provisioners of volumes begin with its name."""
FILESYSTEM = "shared"
STORE = "objects"
API = "ceph.rook.io/v1"


def storage(spec: ClusterSpec) -> tuple[str, Ceph] | None:
    """(site, its Ceph) of a checked spec, which has at most one."""
    return next(((name, site.ceph) for name, site in spec.sites.items() if site.ceph), None)


def of(cluster: Cluster) -> Ceph:
    """The Ceph of a cluster that has one; ValueError for any other."""
    found = storage(cluster.spec)
    if found is None:
        raise ValueError(f"{cluster.name} has no ceph at any site")
    return found[1]


def resource(kind: str, name: str, spec: Object) -> Object:
    """A resource of Rook's."""
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def team_pool(team: str) -> str:
    """A team's pool of block devices, and its data pool and group of the file system."""
    return f"team-{team}"


def team_class(kind: str, team: str) -> str:
    """A team's StorageClass. kind: block or file."""
    return f"{kind}-{team}"


def placement(cluster: Cluster) -> Object:
    """On storage hosts only, whatever taints their pools have. A host that its preflight closes keeps its daemons: the data
    is there and nowhere else."""
    term = {"matchExpressions": [{"key": STORAGE_HOST, "operator": "In", "values": ["true"]}]}
    taints = {
        (taint.key, taint.value, str(taint.effect))
        for pool in of(cluster).hosts
        for taint in preflight.taints(cluster.spec.pools[pool])
    }
    tolerations = [
        {"key": key, "operator": "Equal", "value": value, "effect": effect} for key, value, effect in sorted(taints)
    ]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": affinity} | ({"tolerations": tolerations} if tolerations else {})


def spread(app: str, key: str, *, required: bool) -> Object:
    """At most one pod of an app more in one domain than in another."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if required else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def needs(cpu: str, memory: str, limit: str = "") -> Object:
    """What a pod asks for, and the memory at which it is ended."""
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    return requests | ({"limits": {"memory": limit}} if limit else {})


def replicated(ceph: Ceph, disks: str, **more: object) -> Object:
    """A pool: each replica in another failure domain, on one kind of disks.

    A device class on some pools only makes Ceph give up on sizing any ("Placement Groups", overlapping roots).
    """
    return {
        "failureDomain": str(ceph.failure_domain),
        "deviceClass": disks,
        "replicated": {"size": ceph.replicas, "requireSafeReplicaSize": ceph.replicas > 1},
        **more,
    }
