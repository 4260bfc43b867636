"""What the programs of a control plane counted between two moments, and how close that came to limits."""

from __future__ import annotations

import math
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench import machine, prometheus
from tests.bench.calls import Api
from tests.bench.loopback import Loopback
from tests.bench.loopback_files import ADMIN
from tests.bench.prometheus import Buckets, Labels

LATENCY = "apiserver_request_duration_seconds"
FSYNC = "etcd_disk_wal_fsync_duration_seconds"
_SINGLE = {"GET", "POST", "PUT", "PATCH", "DELETE"}


@dataclass(frozen=True)
class Reading:
    """Counters at one moment.

    cpu: CPU seconds of this machine (busy, available). used: program or role of an etcd -> seconds of CPU time. seconds: of
    the wall clock.
    """

    api: str
    etcds: Mapping[str, str]
    cpu: tuple[float, float]
    used: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class Usage:
    """Differences between two moments.

    p99: verb of single calls -> (99th percentile of the API server's seconds, including its queues, interpolated inside its
    histogram's buckets; number of calls). writes_s: role of an etcd -> keys written per second. fsync_p99: role -> seconds.
    refused: number of answers with 429. cores: program -> CPU cores that it used. busy: share of this machine's CPUs in use by
    any program. rss_mb: memory of the API server at the end. databases: role -> used share of the quota.
    """

    p99: Mapping[str, tuple[float, int]]
    writes_s: Mapping[str, float]
    fsync_p99: Mapping[str, float]
    refused: float
    cores: Mapping[str, float]
    busy: float
    rss_mb: float
    databases: Mapping[str, float]


def read(plane: Loopback, now: float) -> Reading:
    """Read the counters of all programs now."""
    with Api(plane.login(ADMIN.name)) as api:
        text = api.text("/metrics")
    used = {name: _used_s(pid) for name, pid in plane.pids.items()}
    return Reading(text, {role: _fetched(url) for role, url in plane.metrics.items()}, machine.cpu_s(), used, now)


def between(before: Reading, after: Reading, plane: Loopback) -> Usage:
    """Return the differences between two readings."""
    seconds = after.seconds - before.seconds
    latencies = prometheus.between(*(prometheus.histograms(each.api, LATENCY, verb) for each in (before, after)))
    fsyncs = {role: _fsyncs(before.etcds[role], after.etcds[role]) for role in after.etcds}
    busy, available = (later - earlier for earlier, later in zip(before.cpu, after.cpu, strict=True))
    return Usage(
        p99={
            key: (prometheus.quantile(buckets, 0.99), int(buckets[math.inf]))
            for key, buckets in sorted(latencies.items())
        },
        writes_s={role: (_puts(after.etcds[role]) - _puts(before.etcds[role])) / seconds for role in after.etcds},
        fsync_p99={role: prometheus.quantile(buckets, 0.99) for role, buckets in fsyncs.items() if buckets},
        refused=_refused(after.api) - _refused(before.api),
        cores={name: (used - before.used[name]) / seconds for name, used in after.used.items()},
        busy=busy / available,
        rss_mb=rss_mb(plane.pids["kube-apiserver"]),
        databases={
            role: prometheus.total(text, "etcd_mvcc_db_total_size_in_use_in_bytes")
            / prometheus.total(text, "etcd_server_quota_backend_bytes")
            for role, text in after.etcds.items()
        },
    )


def verb(labels: Labels) -> str | None:
    """Return the verb that a request counts as, or None if it does not count.

    Watches don't count, because they are meant to last, nor do requests that are not for objects (logs, proxies, tokens).
    Lists don't either: lists of whole clusters are few and their buckets are ten seconds wide, so only the client can time
    them.
    """
    single = labels["verb"] in _SINGLE and labels["scope"] == "resource" and labels["subresource"] in ("", "status")
    return labels["verb"] if single else None


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB of 10^6 bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def slope(points: Mapping[float, float]) -> float:
    """Return how much y grows with x, by least squares. ValueError for fewer than two points."""
    if len(points) < 2:
        raise ValueError("a slope needs at least two points")
    mean_x, mean_y = sum(points) / len(points), sum(points.values()) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points.items()) / sum((x - mean_x) ** 2 for x in points)


def _fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def _fsyncs(before: str, after: str) -> Buckets:
    histograms = [prometheus.histograms(text, FSYNC, lambda _: "fsync") for text in (before, after)]
    return prometheus.between(*histograms).get("fsync", {})


def _puts(text: str) -> float:
    return prometheus.total(text, "etcd_mvcc_put_total")


def _refused(text: str) -> float:
    return prometheus.total(text, "apiserver_request_total", code="429")


def _used_s(pid: int) -> float:
    # proc_pid_stat(5): the name is in parentheses and may contain spaces; utime and stime are fields 14 and 15.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
