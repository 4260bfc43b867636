"""Storage of teams: block pools, a file system with a data pool per team, an object store with a user per team.

A full pool rejects only the writes of its own team.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.ceph import Ceph
from cluster.places import STORAGE_RACK
from cluster.spec import Cluster
from components.ceph.names import (
    FILESYSTEM,
    GATEWAYS,
    METADATA_SERVERS,
    STORE,
    needs,
    of,
    placement,
    replicated,
    resource,
    spread,
    team_class,
    team_pool,
)
from components.control_plane.objects import Object

_MOST_BUCKETS = 1000
"""radosgw's default for a user ("Quota Management")."""


def block_pools(ceph: Ceph) -> Iterator[Object]:
    """Yield a CephBlockPool for each team with block devices."""
    for name, team in ceph.teams.items():
        if team.block is not None:
            disks = ceph.disks_of("block", team)
            spec = replicated(ceph, disks, quotas=_quota(team.block), application="rbd", enableRBDStats=True)
            yield resource("CephBlockPool", team_pool(name), spec)


def filesystem(cluster: Cluster) -> Iterator[Object]:
    """Yield one CephFS with a data pool and a subvolume group for each team, both with the team's quota."""
    ceph = of(cluster)
    teams = {name: team for name, team in ceph.teams.items() if team.file is not None}
    if not teams:
        return
    # The first data pool stores a backtrace for every file of all pools, so it has no quota ("Create a Ceph file system").
    pools = [{"name": "default", **replicated(ceph, ceph.first_disks)}]
    for name, team in teams.items():
        pools.append(
            {"name": team_pool(name), **replicated(ceph, ceph.disks_of("file", team), quotas=_quota(team.file))}
        )
    spec = {
        "metadataPool": replicated(ceph, ceph.first_disks),
        "dataPools": pools,
        "preserveFilesystemOnDelete": True,
        "metadataServer": {
            "activeCount": METADATA_SERVERS - 1,
            "activeStandby": True,
            "priorityClassName": "system-cluster-critical",
            "resources": needs("1", "4Gi", "4Gi"),
            "placement": _spread(cluster, "rook-ceph-mds"),
        },
    }
    yield resource("CephFilesystem", FILESYSTEM, spec)
    for name, team in teams.items():
        yield resource("CephFilesystemSubVolumeGroup", team_pool(name), _group(name, team.file or 0))


def object_store(cluster: Cluster) -> Iterator[Object]:
    """Yield one object store with a user for each team. A user's quota covers all its buckets."""
    ceph = of(cluster)
    teams = {name: team.object for name, team in ceph.teams.items() if team.object is not None}
    if not teams:
        return
    spec = {
        "metadataPool": replicated(ceph, ceph.first_disks),
        "dataPool": replicated(ceph, ceph.first_disks, parameters={"bulk": "true"}),
        "preservePoolsOnDelete": True,
        "gateway": {
            "instances": GATEWAYS,
            "port": 80,
            # On the pod network: on the host's network it would take port 80 on every address of a storage host.
            "hostNetwork": False,
            "priorityClassName": "system-cluster-critical",
            "resources": needs("1", "1Gi", "2Gi"),
            "placement": _spread(cluster, "rook-ceph-rgw"),
        },
        "healthCheck": {"startupProbe": {"disabled": False}, "readinessProbe": {"disabled": False}},
    }
    yield resource("CephObjectStore", STORE, spec)
    for name, size in teams.items():
        quotas = {"maxSize": str(size), "maxBuckets": _MOST_BUCKETS}
        user = {"store": STORE, "displayName": f"team {name}", "quotas": quotas}
        yield resource("CephObjectStoreUser", team_pool(name), user)


def _quota(size: int | None) -> Object:
    return {"maxSize": str(size)}


def _group(name: str, size: int) -> Object:
    return {
        "filesystemName": FILESYSTEM,
        "dataPoolName": f"{FILESYSTEM}-{team_pool(name)}",
        "quota": str(size),
        # Set here so that the StorageClass can name it before Rook creates the group.
        "clusterID": team_class("file", name),
        "pinning": {"distributed": 1},
    }


def _spread(cluster: Cluster, app: str) -> Object:
    hosts, racks = (
        spread(app, key, required=required)
        for key, required in (("kubernetes.io/hostname", True), (STORAGE_RACK, False))
    )
    return {**placement(cluster), "topologySpreadConstraints": [hosts, racks]}
