"""ETC-008: the kind of disk of an etcd: whether it exists, and how long a write takes on it."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.catalogue import Catalogue
from cluster.check.catalogue import of_cloud, unless_newer
from cluster.check.finding import Finding, Subject
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.spec import EtcdCluster, EtcdHosts, Profile

LOCAL = "local-nvme"
_LAB = ("lab-folder", LOCAL)


def disk(subject: Subject) -> Iterator[Finding]:
    """A commit waits for the disks of a majority of members; etcd's limit is 10 ms at the 99th percentile."""
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
            yield from _without_local_disk("main" if on_main else role, main if on_main else etcd, where, facts)


def local_disks(subject: Subject) -> Iterator[Finding]:
    """Two etcds on one host need separate disks, or one would wait for the other's writes."""
    main, events, facts = subject.spec.etcd.main, subject.spec.etcd.events, of_cloud(subject)
    if facts is None or events.hosts is not EtcdHosts.MAIN or not main.disk == events.disk == LOCAL:
        return
    machine = facts.machine_types.get(main.machine)
    if machine and machine.type and machine.type.nvme and machine.type.nvme.disks < 2:
        message = f"etcd.main and etcd.events each need a local NVMe disk, but {main.machine} has only one"
        hint = "write a machine type with two, another disk for events, or leave etcd.events.hosts out"
        yield Finding(("etcd", "events", "disk"), message, hint, also=(("etcd", "main", "machine"),))


def _slow(role: str, etcd: EtcdCluster, facts: Catalogue, subject: Subject) -> Finding:
    machine, network = facts.choices.local_disk_machine, facts.choices.etcd_disk
    # Losing events does no harm, so a slow disk for them is only a warning.
    strict = role == "main" and subject.spec.profile is Profile.PRODUCTION
    return Finding(
        ("etcd", role, "disk"),
        f"etcd.{role} disk {etcd.disk} has {facts.disks[etcd.disk].latency}; every write would wait for it",
        f"use {LOCAL} (with a machine type such as {machine}) or {network}",
        also=(("control_plane", "cloud"),),
        severity="error" if strict else "warning",
    )


def _without_local_disk(role: str, etcd: EtcdCluster, where: Where, facts: Catalogue) -> Iterator[Finding]:
    machine = facts.machine_types.get(etcd.machine)
    if machine is None or machine.series is None or machine.type is None:
        return
    if machine.type.nvme is None and machine.series.local_nvme == "listed":
        advised, network = facts.choices.local_disk_machine, facts.choices.etcd_disk
        message = f"etcd.{where[1]} disk is {LOCAL}, but {etcd.machine} has no local NVMe disk"
        also: tuple[Where, ...] = (("control_plane", "cloud"), ("etcd", role, "machine"))
        yield Finding(
            where, message, f"write a machine type that has one, such as {advised}, or disk: {network}", also=also
        )
