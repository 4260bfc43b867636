"""Names that Rook, nodes and teams use, and fragments that several resources share. No I/O."""

from __future__ import annotations

from cluster import preflight
from cluster.ceph import Ceph
from cluster.places import STORAGE_HOST
from cluster.spec import Cluster, ClusterSpec
from components.control_plane.objects import Object

NAMESPACE = CLUSTER = "rook-ceph"
"""Rook's release has its rights in this namespace. Names of its volume provisioners start with the operator's namespace."""
FILESYSTEM = "shared"
STORE = "objects"
METADATA_SERVERS = 2
"""Of the file system. One is active, one stands by."""
GATEWAYS = 2
"""Of the object store."""
API = "ceph.rook.io/v1"


def storage(spec: ClusterSpec) -> tuple[str, Ceph] | None:
    """Return (site, its Ceph) of a checked spec, which has at most one; None without Ceph."""
    return next(((name, site.ceph) for name, site in spec.sites.items() if site.ceph), None)


def of(cluster: Cluster) -> Ceph:
    """Return the cluster's Ceph. Raises ValueError if it has none."""
    configured = storage(cluster.spec)
    if configured is None:
        raise ValueError(f"{cluster.name} has no ceph at any site")
    return configured[1]


def managers(hosts: int) -> int:
    """Return the number of Ceph's managers on that many storage hosts. One is active, another stands by."""
    return min(2, hosts)


def resource(kind: str, name: str, spec: Object) -> Object:
    """Return a Rook resource."""
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def team_pool(team: str) -> str:
    """Return the name of a team's block pool, which is also that of its data pool and subvolume group in the file system."""
    return f"team-{team}"


def team_class(kind: str, team: str) -> str:
    """Return the name of a team's StorageClass. kind: block or file."""
    return f"{kind}-{team}"


def placement(cluster: Cluster) -> Object:
    """Return a placement on storage hosts only, which tolerates every taint of their pools.

    That includes the taint of a failed preflight: the host keeps its daemons because only it holds their data.
    """
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
    """Return a topology spread constraint: domains differ by at most one pod of the app."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if required else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def needs(cpu: str, memory: str, limit: str = "") -> Object:
    """Return resource requests, and the limit of memory above which the container is killed."""
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    return requests | ({"limits": {"memory": limit}} if limit else {})


def replicated(ceph: Ceph, disks: str, **more: object) -> Object:
    """Return a pool spec with each replica in another failure domain, on one kind of disk.

    Every pool needs a device class: if only some have one, Ceph stops autoscaling all of them ("Placement Groups",
    overlapping roots).
    """
    return {
        "failureDomain": str(ceph.failure_domain),
        "deviceClass": disks,
        "replicated": {"size": ceph.replicas, "requireSafeReplicaSize": ceph.replicas > 1},
        **more,
    }
