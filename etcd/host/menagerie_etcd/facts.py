"""State of the members on this host: disks, metrics, certificates, the clock."""

from __future__ import annotations

import calendar
import json
import os
import re
import shutil
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

from .agent_settings import Settings
from .surgery import Surgery, Units

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_METRICS_S = 3
_WORDS = 300
_REMOVED = "the member has been permanently removed from the cluster"
"""etcd logs this as a warning; its later errors only say that the server stops."""
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_UTC_TIME, _GENERALIZED_TIME, _CONTEXT_0 = 0x17, 0x18, 0xA0

Samples = dict[str, list[tuple[dict[str, str], float]]]


def state(settings: Settings, surgeries: dict[str, Surgery], units: Units) -> dict[str, Any]:
    """Return the answer to GET /v1/state. Times are seconds since 1970, sizes bytes."""
    return {
        "clock": time.time(),
        "members": {role: _member(surgery, units) for role, surgery in surgeries.items()},
        "certificates": {str(path): not_after(path.read_text()) for path in _certificates(settings)},
    }


def _member(surgery: Surgery, units: Units) -> dict[str, Any]:
    member = surgery.member
    disk = shutil.disk_usage(str(member.data_dir))
    metrics = _metrics(member.metrics_port)
    return {
        "name": member.name,
        "unit": member.unit,
        "active": units.is_active(member.unit),
        "held": surgery.held(),
        "data_dir": str(member.data_dir),
        "data_bytes": _size(member.data_dir / "member"),
        "disk_free": disk.free,
        "disk_total": disk.total,
        "kept_aside": {path.name: _size(path) for path in surgery.kept_aside()},
        "kept_aside_s": surgery.ages_aside(),
        "last_words": "" if metrics else last_words(units.said(member.unit)),
        **metrics,
    }


def last_words(lines: list[str]) -> str:
    """Return the last error of an etcd's log, "" if there is none. Lines are JSON objects, except those of a panic."""
    if any(_REMOVED in line for line in lines):
        return _REMOVED
    for line in reversed(lines):
        if line.startswith("panic: "):
            return line[:_WORDS]
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("level") in ("error", "fatal", "panic"):
            return ": ".join(str(entry[key]) for key in ("msg", "error") if key in entry)[:_WORDS]
    return ""


def _metrics(port: int) -> dict[str, Any]:
    """Return figures from etcd's metrics; {} if it is not running."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_METRICS_S) as answer:
            metrics = samples(answer.read().decode())
    except OSError:
        return {}
    versions = metrics.get("etcd_server_version", [])
    return {
        "version": versions[0][0].get("server_version", "") if versions else "",
        "fsync_p99_s": quantile(metrics, "etcd_disk_wal_fsync_duration_seconds", 0.99),
        "commit_p99_s": quantile(metrics, "etcd_disk_backend_commit_duration_seconds", 0.99),
        "leader_changes": _value(metrics, "etcd_server_leader_changes_seen_total"),
        "has_leader": _value(metrics, "etcd_server_has_leader") == 1,
        "quota": _value(metrics, "etcd_server_quota_backend_bytes"),
    }


def samples(text: str) -> Samples:
    """Parse Prometheus' text format: name of a metric -> its (labels, value) pairs."""
    metrics: Samples = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match:
            name, labels, value = match.groups()
            metrics.setdefault(name, []).append((dict(_LABEL.findall(labels or "")), float(value)))
    return metrics


def quantile(metrics: Samples, name: str, share: float) -> float | None:
    """Estimate a quantile of a histogram as Prometheus' histogram_quantile does; None if nothing was counted."""
    buckets = sorted((float(labels["le"]), count) for labels, count in metrics.get(name + "_bucket", []))
    if not buckets or not buckets[-1][1]:
        return None
    rank, lower, below = share * buckets[-1][1], 0.0, 0.0
    for upper, count in buckets:
        if count >= rank:
            if upper == float("inf"):
                return lower
            return lower + (upper - lower) * (rank - below) / (count - below)
        lower, below = upper, count
    return lower


def not_after(pem: str) -> int:
    """Return when the first certificate of a PEM file expires, in seconds since 1970."""
    match = _CERTIFICATE.search(pem)
    if not match:
        raise ValueError("no certificate in the file")
    # RFC 5280, 4.1: Certificate { TBSCertificate { [0] version?, serial, signature, issuer, validity { from, until }
    (certificate,) = _items(ssl.PEM_cert_to_DER_cert(match[0]))
    fields = _items(_items(certificate[1])[0][1])
    after_version = fields[1:] if fields[0][0] == _CONTEXT_0 else fields
    kind, text = _items(after_version[3][1])[1]
    form = "%y%m%d%H%M%SZ" if kind == _UTC_TIME else "%Y%m%d%H%M%SZ"
    if kind not in (_UTC_TIME, _GENERALIZED_TIME):
        raise ValueError("the certificate's validity has no time")
    return calendar.timegm(time.strptime(text.decode(), form))


def _items(der: bytes) -> list[tuple[int, bytes]]:
    """Return (tag, content) of consecutive DER elements (X.690, 8.1)."""
    items, at = [], 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            more = length & 0x7F
            length, at = int.from_bytes(der[at : at + more], "big"), at + more
        items.append((tag, der[at : at + length]))
        at += length
    return items


def _certificates(settings: Settings) -> list[Path]:
    folders = [member.pki for member in settings.members.values()]
    return sorted({path for folder in folders for path in folder.glob("*.crt")} | {settings.ca})


def _value(metrics: Samples, name: str) -> int:
    return int(metrics[name][0][1]) if name in metrics else 0


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder. etcd may delete some meanwhile."""
    total = 0
    for where, _, names in os.walk(str(folder)):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                continue
    return total
