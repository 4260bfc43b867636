"""ETC-008: the kind of disk under an etcd: whether there is one, and how long a write takes on it."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.catalogue import Catalogue
from cluster.check.catalogue import of_cloud, unless_newer
from cluster.check.finding import Finding, Subject
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.spec import Cloud, EtcdCluster, EtcdHosts, Profile

LOCAL = "local-nvme"
_LAB = ("lab-folder", LOCAL)
ADVICE = {
    Cloud.AZURE: ("Standard_L8s_v3", "premium_ssd_v2"),
    Cloud.AWS: ("i4i.xlarge", "io2"),
    Cloud.GCP: ("c3-standard-8-lssd", "hyperdisk-balanced"),
}
"""Cloud -> (a machine type with a local disk, the network disk to take without one)."""


def disk(subject: Subject) -> Iterator[Finding]:
    """A commit waits for the disk of most members; 10 ms at the 99th percentile is etcd's limit."""
    cloud, facts = subject.spec.control_plane.cloud, of_cloud(subject)
    main, events = subject.spec.etcd.main, subject.spec.etcd.events
    for role, etcd in (("main", main), ("events", events)):
        where: Where = ("etcd", role, "disk")
        also: tuple[Where, ...] = (("control_plane", "cloud"),)
        if etcd.disk not in (facts.disks if facts else _LAB):
            known = tuple(facts.disks) if facts else _LAB
            best = near(etcd.disk, known)
            message = (
                f"etcd.{role} disk {etcd.disk} isn't a kind of disk that {cloud} has{did_you_mean(etcd.disk, known)}"
            )
            hint = f"write {best[0] if best else known[0]}"
            yield Finding(where, message, unless_newer(hint, facts) if facts else hint, also=also, unknown=bool(facts))
        elif facts and not facts.disks[etcd.disk].fast:
            yield _slow(role, etcd, facts, subject)
        elif facts and etcd.disk == LOCAL:
            on_main = role == "events" and events.hosts is EtcdHosts.MAIN
            yield from _without_local_disk("main" if on_main else role, main if on_main else etcd, where, facts, cloud)


def local_disks(subject: Subject) -> Iterator[Finding]:
    """Two etcds on one host each need a disk of their own, or one would wait for the other's writes."""
    main, events, facts = subject.spec.etcd.main, subject.spec.etcd.events, of_cloud(subject)
    if facts is None or events.hosts is not EtcdHosts.MAIN or not main.disk == events.disk == LOCAL:
        return
    found = facts.machine_types.get(main.machine)
    if found and found.type and found.type.nvme and found.type.nvme.disks < 2:
        message = f"etcd.main and etcd.events want a local NVMe disk each, and {main.machine} has one"
        hint = "write a machine with two, another disk for events, or leave hosts out"
        yield Finding(("etcd", "events", "disk"), message, hint, also=(("etcd", "main", "machine"),))


def _slow(role: str, etcd: EtcdCluster, facts: Catalogue, subject: Subject) -> Finding:
    cloud = subject.spec.control_plane.cloud
    machine, network = ADVICE[cloud]
    # Events may be lost without harm, so a slow disk there is only a pity.
    strict = role == "main" and subject.spec.profile is Profile.PRODUCTION
    return Finding(
        ("etcd", role, "disk"),
        f"etcd.{role} disk {etcd.disk} has {facts.disks[etcd.disk].latency}; every write would wait for it",
        f"use {LOCAL} (a machine such as {machine}) or {network}",
        also=(("control_plane", "cloud"),),
        severity="error" if strict else "warning",
    )


def _without_local_disk(
    role: str, etcd: EtcdCluster, where: Where, facts: Catalogue, cloud: Cloud
) -> Iterator[Finding]:
    found = facts.machine_types.get(etcd.machine)
    if found is None or found.series is None or found.type is None:
        return
    if found.type.nvme is None and found.series.local_nvme == "listed":
        machine, network = ADVICE[cloud]
        message = f"etcd.{where[1]} disk is {LOCAL}, and {etcd.machine} has no local NVMe disk"
        also: tuple[Where, ...] = (("control_plane", "cloud"), ("etcd", role, "machine"))
        yield Finding(where, message, f"write a machine that has one, such as {machine}, or disk: {network}", also=also)
