"""Prometheus rules for Ceph and for the quotas of teams. The metrics come from Ceph's manager ("Prometheus Module").

The rules are in a ConfigMap because Menagerie does not install the Prometheus operator, which owns PrometheusRule. The same
text fits in a PrometheusRule.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cluster.ceph import USABLE, Ceph
from components.ceph.names import NAMESPACE
from components.control_plane.objects import Object

ALERTS = "ceph-alerts"
FILE = "ceph.rules.json"


class Alert(NamedTuple):
    """An alert that fires after `expression` has been true for `holds`. way_out: what to do, in one sentence."""

    name: str
    expression: str
    holds: str
    severity: str
    summary: str
    way_out: str


def _health(check: str) -> str:
    """Return the expression for a failing health check of Ceph ("Health checks")."""
    return f'ceph_health_detail{{name="{check}"}} > 0'


_OSDS = "Look at the disk with `ceph osd tree down`; replace it as docs/how-to/ceph.md says."
_FULL = "Delete data or add disks before writes stop; `ceph df detail` shows whose they are."
ALERTS_OF_CEPH = (
    Alert("CephNotThere", "absent(ceph_health_status)", "10m", "critical",
          "No metric of Ceph arrives.", "Look at the pods rook-ceph-mgr and at the scraping of rook-ceph."),
    Alert("CephHealthError", "ceph_health_status == 2", "5m", "critical",
          "Ceph is in error.", "`ceph health detail` says why."),
    Alert("CephHealthWarning", "ceph_health_status == 1", "30m", "warning",
          "Ceph has warned for half an hour.", "`ceph health detail` says why."),
    Alert("CephMonitorDown", _health("MON_DOWN"), "2m", "critical",
          "A monitor is down; with half of them down, all storage stops.", "Look at its host and its pod."),
    Alert("CephMonitorClockSkew", _health("MON_CLOCK_SKEW"), "5m", "warning",
          "Clocks of monitors differ.", "Look at chrony on the storage hosts."),
    Alert("CephMonitorDiskLow", _health("MON_DISK_LOW"), "5m", "warning",
          "A monitor's disk, /var/lib/rook, fills up.", "Make room on the host's system disk."),
    Alert("CephHostDown", _health("OSD_HOST_DOWN"), "5m", "critical",
          "A storage host is down with all its disks.", "Bring the host back before its data is copied elsewhere."),
    Alert("CephDiskDown", "ceph_osd_up == 0", "5m", "warning", "A disk's daemon is down.", _OSDS),
    Alert("CephDiskFailing", _health("DEVICE_HEALTH"), "5m", "warning", "A disk says that it will fail.", _OSDS),
    Alert("CephSlowOperations", _health("SLOW_OPS"), "5m", "warning",
          "Requests wait for more than half a minute.", "`ceph health detail` names the disks; look for a failing one."),
    Alert("CephSlowNetwork", 'ceph_health_detail{name=~"OSD_SLOW_PING_TIME_(FRONT|BACK)"} > 0', "5m", "warning",
          "Storage hosts reach each other slowly.", "Look at ports and cables; FRONT is public, BACK the cluster network."),
    Alert("CephNearFull", 'ceph_health_detail{name=~"OSD_NEARFULL|OSD_BACKFILLFULL"} > 0', "5m", "warning",
          "Disks are nearly full.", _FULL),
    Alert("CephFull", _health("OSD_FULL"), "1m", "critical", "A disk is full: writes have stopped for everybody.", _FULL),
    Alert("CephDataUnavailable", _health("PG_AVAILABILITY"), "5m", "critical",
          "Some data can neither be read nor written.", "Bring back the hosts or disks that are down."),
    Alert("CephDataDamaged", 'ceph_health_detail{name=~"PG_DAMAGED|OSD_SCRUB_ERRORS"} > 0', "5m", "critical",
          "Replicas differ.", "`ceph health detail` names the placement group; `ceph pg repair` mends it."),
    Alert("CephFilesystemDown", 'ceph_health_detail{name=~"MDS_ALL_DOWN|FS_WITH_FAILED_MDS"} > 0', "1m", "critical",
          "The shared file system does not answer.", "Look at the pods rook-ceph-mds."),
    Alert("CephDaemonCrashed", _health("RECENT_CRASH"), "1m", "warning",
          "A daemon has crashed.", "`ceph crash ls`, then `ceph crash archive-all`."),
)  # fmt: skip
_NAMED = " * on (pool_id) group_left (name) ceph_pool_metadata"


def of_teams(ceph: Ceph) -> tuple[Alert, ...]:
    """Return the alerts on team quotas: a team's pool fills up long before the disks do."""
    if not any(team.block is not None or team.file is not None for team in ceph.teams.values()):
        return ()
    share = "(ceph_pool_stored / (ceph_pool_quota_bytes > 0))"
    full = "A pool over its quota refuses writes of its team until data is deleted or the spec gives it more."
    return (
        Alert("CephTeamNearQuota", f"({share} > {USABLE}){_NAMED}", "15m", "warning",
              "Pool {{ $labels.name }} has used {{ $value | humanizePercentage }} of its quota.", full),
        Alert("CephTeamAtQuota", f"({share} >= 1){_NAMED}", "1m", "critical",
              "Pool {{ $labels.name }} is at its quota; its team can't write.", full),
    )  # fmt: skip


def groups(ceph: Ceph) -> Object:
    """Return the content of a Prometheus rule file. It is written as JSON, which is also valid YAML."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.holds,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.way_out},
        }
        for alert in (*ALERTS_OF_CEPH, *of_teams(ceph))
    ]
    return {"groups": [{"name": "ceph", "rules": rules}]}


def config_map(ceph: Ceph) -> Object:
    """Return the ConfigMap with the rules, for your own Prometheus to mount."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ALERTS, "namespace": NAMESPACE},
        "data": {FILE: json.dumps(groups(ceph), indent=1) + "\n"},
    }
