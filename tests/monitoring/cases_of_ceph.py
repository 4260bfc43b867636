"""Samples with which alerts on Ceph fire, and with which they must not."""

from __future__ import annotations

from collections.abc import Iterator

from components.ceph import alerts
from tests.monitoring.cases import Case

_CHECKS = {
    "CephMonitorDown": ("MON_DOWN", 3),
    "CephMonitorClockSkew": ("MON_CLOCK_SKEW", 6),
    "CephMonitorDiskLow": ("MON_DISK_LOW", 6),
    "CephHostDown": ("OSD_HOST_DOWN", 6),
    "CephDiskFailing": ("DEVICE_HEALTH", 6),
    "CephSlowOperations": ("SLOW_OPS", 6),
    "CephSlowNetwork": ("OSD_SLOW_PING_TIME_BACK", 6),
    "CephNearFull": ("OSD_BACKFILLFULL", 6),
    "CephFull": ("OSD_FULL", 2),
    "CephDataUnavailable": ("PG_AVAILABILITY", 6),
    "CephDataDamaged": ("OSD_SCRUB_ERRORS", 6),
    "CephFilesystemDown": ("MDS_ALL_DOWN", 2),
    "CephDaemonCrashed": ("RECENT_CRASH", 2),
}
"""Alert -> the failing check that it is about, and after how many minutes it fires."""
_SAYS = {alert.name: alert.summary for alert in alerts.ALERTS_OF_CEPH}
_POOL = {"pool_id": "1", "name": "robotics"}


def _of_checks() -> Iterator[Case]:
    for name, (check, at) in _CHECKS.items():
        series = f'ceph_health_detail{{name="{check}"}}'
        good = {series: "0x60", 'ceph_health_detail{name="POOL_APP_NOT_ENABLED"}': "1x60"}
        yield Case(name, at, {series: "1x60"}, good, {"name": check}, _SAYS[name])


def _pool(stored: int) -> dict[str, str]:
    return {
        'ceph_pool_stored{pool_id="1"}': f"{stored}x60",
        'ceph_pool_quota_bytes{pool_id="1"}': "100x60",
        'ceph_pool_stored{pool_id="2"}': "900x60",
        'ceph_pool_quota_bytes{pool_id="2"}': "0x60",
        'ceph_pool_metadata{pool_id="1",name="robotics"}': "1x60",
        'ceph_pool_metadata{pool_id="2",name="without-quota"}': "1x60",
    }


def _health(value: int) -> dict[str, str]:
    return {"ceph_health_status": f"{value}x60"}


CEPH = (
    Case("CephNotThere", 11, {}, _health(0), {}, _SAYS["CephNotThere"]),
    Case("CephHealthError", 6, _health(2), _health(1), {}, _SAYS["CephHealthError"]),
    Case("CephHealthWarning", 31, _health(1), _health(0), {}, _SAYS["CephHealthWarning"]),
    Case("CephDiskDown", 6, {'ceph_osd_up{ceph_daemon="osd.3"}': "0x60"}, {'ceph_osd_up{ceph_daemon="osd.3"}': "1x60"},
         {"ceph_daemon": "osd.3"}, _SAYS["CephDiskDown"]),
    *_of_checks(),
    Case("CephTeamNearQuota", 16, _pool(90), _pool(50), _POOL, "Pool robotics has used 90% of its quota."),
    Case("CephTeamAtQuota", 2, _pool(100), _pool(99), _POOL, "Pool robotics is at its quota; its team can't write."),
)  # fmt: skip
