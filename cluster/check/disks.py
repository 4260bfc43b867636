"""ETC-008: the kinds of disk that each cloud has, and how long a write takes on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cluster.check.finding import Finding, Subject
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.spec import Cloud, Profile


@dataclass(frozen=True)
class _Disks:
    """write_ms: slow kinds -> milliseconds that a synchronous write takes there, about."""

    good: tuple[str, ...]
    write_ms: dict[str, int]
    advice: str


# Kinds and their class of latency, from common knowledge: not yet checked against the clouds' own pages.
_BY_CLOUD = {
    Cloud.AZURE: _Disks(
        ("local-nvme", "premium_ssd_v2", "ultra_ssd"),
        {"premium_ssd": 2, "standard_ssd": 5, "standard_hdd": 10},
        "local-nvme (a machine such as Standard_L8s_v3) or premium_ssd_v2",
    ),
    Cloud.AWS: _Disks(
        ("local-nvme", "io2"),
        {"gp3": 2, "gp2": 2, "io1": 2, "st1": 10, "sc1": 10},
        "local-nvme (a machine such as i4i.xlarge) or io2",
    ),
    Cloud.GCP: _Disks(
        ("local-nvme", "hyperdisk-extreme", "hyperdisk-balanced"),
        {"pd-ssd": 2, "pd-balanced": 2, "pd-extreme": 2, "pd-standard": 10},
        "local-nvme (a machine such as c3-standard-8-lssd) or hyperdisk-extreme",
    ),
    Cloud.LAB: _Disks(("lab-folder", "local-nvme"), {}, "lab-folder"),
}


def slow_disk(subject: Subject) -> Iterator[Finding]:
    """A commit waits for the disk of most members; 10 ms at the 99th percentile is etcd's limit."""
    cloud = subject.spec.control_plane.cloud
    disks = _BY_CLOUD[cloud]
    for role, etcd in (("main", subject.spec.etcd.main), ("events", subject.spec.etcd.events)):
        where: Where = ("etcd", role, "disk")
        also: tuple[Where, ...] = (("control_plane", "cloud"),)
        if etcd.disk in disks.write_ms:
            # Events may be lost without harm, so a slow disk there is only a pity.
            strict = role == "main" and subject.spec.profile is Profile.PRODUCTION
            message = (
                f"etcd.{role} disk {etcd.disk} has about {disks.write_ms[etcd.disk]} ms write latency; "
                "every write would wait for it"
            )
            yield Finding(where, message, f"use {disks.advice}", also=also, severity="error" if strict else "warning")
        elif etcd.disk not in disks.good:
            known = (*disks.good, *disks.write_ms)
            best = near(etcd.disk, known)
            message = (
                f"etcd.{role} disk {etcd.disk} isn't a kind of disk that {cloud} has{did_you_mean(etcd.disk, known)}"
            )
            yield Finding(where, message, f"write {best[0] if best else disks.good[0]}", also=also)
