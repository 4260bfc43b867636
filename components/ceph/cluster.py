"""Rook's CephCluster: monitors, networks, and each disk by name.

Requests and limits are those of Rook's chart ("rook-ceph-cluster" values), except for an OSD's memory, which the spec sets.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.ceph import Ceph, FailureDomain
from cluster.images import CEPH, by_digest
from cluster.places import STORAGE_RACK
from cluster.quantities import format_bytes
from cluster.spec import Cluster
from components.ceph.facts import Device
from components.ceph.host import networks
from components.ceph.names import CLUSTER, NAMESPACE, managers, needs, of, placement, replicated, resource, spread
from components.control_plane.objects import Object

_POD_SECURITY = "pod-security.kubernetes.io"


def namespace() -> Object:
    """Return Rook's namespace, labelled privileged.

    OSDs open the host's disks and monitors use the host's network. The API servers' default would reject such pods.
    """
    labels = {f"{_POD_SECURITY}/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def ceph_cluster(cluster: Cluster, devices: Mapping[str, tuple[Device, ...]]) -> Object:
    """Return the CephCluster. devices: host -> its disks that match the spec. Rook leaves all other disks alone."""
    ceph = of(cluster)
    spec = {
        "cephVersion": {"image": by_digest(cluster.spec, CEPH), "allowUnsupported": False},
        "dataDirHostPath": "/var/lib/rook",
        "skipUpgradeChecks": False,
        "continueUpgradeAfterChecksEvenIfNotHealthy": False,
        "upgradeOSDRequiresHealthyPGs": True,
        "mon": {"count": ceph.monitors, "allowMultiplePerNode": False},
        "mgr": {"count": managers(len(devices)), "allowMultiplePerNode": False},
        # On the host's network the dashboard would listen on every address of a storage host.
        "dashboard": {"enabled": False},
        # Resources of the Prometheus operator, which Menagerie does not install. Rook annotates pods for scraping anyway.
        "monitoring": {"enabled": False, "metricsDisabled": False},
        "network": _network(cluster, ceph),
        # Kernels before 7.0 support no other type of client key (Rook, "cluster.yaml").
        "security": {"cephx": {"csi": {"keyType": "aes"}}},
        "cephConfig": {"global": {"osd_pool_default_size": str(ceph.replicas)}},
        "crashCollector": {"disable": False, "daysToRetain": 30},
        "logCollector": {"enabled": True, "periodicity": "daily", "maxLogSize": "500M"},
        "cleanupPolicy": {"confirmation": "", "allowUninstallWithVolumes": False},
        "removeOSDsIfOutAndSafeToRemove": False,
        "priorityClassNames": {
            "mon": "system-node-critical",
            "osd": "system-node-critical",
            "mgr": "system-cluster-critical",
        },
        "disruptionManagement": {"managePodBudgets": True, "osdMaintenanceTimeout": 30},
        "healthCheck": {
            "daemonHealth": {
                "mon": {"disabled": False, "interval": "45s"},
                "osd": {"disabled": False, "interval": "60s"},
                "status": {"disabled": False, "interval": "60s"},
            },
            "livenessProbe": {daemon: {"disabled": False} for daemon in ("mon", "mgr", "osd")},
            "startupProbe": {daemon: {"disabled": False} for daemon in ("mon", "mgr", "osd")},
        },
        "placement": _placement(cluster, ceph),
        "resources": _resources(ceph),
        "storage": _storage(devices),
    }
    return resource("CephCluster", CLUSTER, spec)


def manager_pool(ceph: Ceph) -> Object:
    """Return Ceph's internal pool, `.mgr`, on a device class like every other pool."""
    disks = ceph.first_disks
    return resource("CephBlockPool", "builtin-mgr", {"name": ".mgr", **replicated(ceph, disks)})


def _network(cluster: Cluster, ceph: Ceph) -> Object:
    address_ranges = {name: ranges for name, ranges in networks(cluster).items() if ranges}
    return {
        "provider": "host",
        "ipFamily": "IPv4",
        "addressRanges": address_ranges,
        "connections": {
            "encryption": {"enabled": ceph.encrypt},
            "compression": {"enabled": False},
            "requireMsgr2": True,
        },
    }


def _placement(cluster: Cluster, ceph: Ceph) -> Object:
    by_rack = ceph.failure_domain is FailureDomain.RACK
    return {
        "all": placement(cluster),
        "mon": {"topologySpreadConstraints": [spread("rook-ceph-mon", STORAGE_RACK, required=by_rack)]},
        "mgr": {"topologySpreadConstraints": [spread("rook-ceph-mgr", STORAGE_RACK, required=False)]},
    }


def _resources(ceph: Ceph) -> Object:
    # Rook derives osd_memory_target from the values here ("Ceph Cluster CRD").
    memory = format_bytes(ceph.osd_memory).removesuffix("B")
    return {
        "mon": needs("1", "1Gi", "2Gi"),
        "mgr": needs("500m", "512Mi", "1Gi"),
        "osd": needs("1", memory, memory),
        # No limit: preparing a disk is done once and takes more memory the larger the disk is.
        "prepareosd": needs("500m", "50Mi"),
        "crashcollector": needs("100m", "60Mi", "60Mi"),
        "logcollector": needs("100m", "100Mi", "1Gi"),
        "exporter": needs("50m", "50Mi", "128Mi"),
        "cleanup": needs("500m", "100Mi", "1Gi"),
    }


def _storage(devices: Mapping[str, tuple[Device, ...]]) -> Object:
    nodes = [
        {
            "name": host,
            "devices": [{"name": device.path, "config": {"deviceClass": device.disks}} for device in disks],
        }
        for host, disks in devices.items()
    ]
    return {
        "useAllNodes": False,
        "useAllDevices": False,
        "nodes": nodes,
        "allowDeviceClassUpdate": False,
        "onlyApplyOSDPlacement": False,
        "scheduleAlways": False,
    }
