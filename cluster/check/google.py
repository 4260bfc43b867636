"""CLD-009: what Google Cloud doesn't offer in combination, and would refuse only half-way through an `up`.

Sources, by page title: "Choose a disk type" (disks by series of machines); "Configure per VM Tier_1 networking
performance"; "Consume zonal reservations".
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.bandwidth import can_have_tier_1
from cluster.check.catalogue import of_cloud
from cluster.check.finding import Finding, Rule, Subject
from cluster.disks import takes
from cluster.document import Where
from cluster.spec import Cloud, EtcdCluster, EtcdHosts

_LOCAL = "local-nvme"
_SHARED = "projects/"


def disks_of_members(subject: Subject) -> Iterator[Finding]:
    """The series of a machine type decides which kinds of disks can be attached."""
    spec, facts = subject.spec, of_cloud(subject)
    if spec.control_plane.cloud is not Cloud.GCP or facts is None:
        return
    main, events = spec.etcd.main, spec.etcd.events
    on_main = events.hosts is EtcdHosts.MAIN
    members: tuple[tuple[str, EtcdCluster, str], ...] = (
        ("main", main, "main"),
        ("events", events, "main" if on_main else "events"),
    )
    for role, etcd, host in members:
        machine = main.machine if host == "main" else events.machine
        if etcd.disk == _LOCAL or etcd.disk not in facts.disks or takes(Cloud.GCP, machine, etcd.disk):
            continue
        machine_to_take, disk_to_take = facts.choices.local_disk_machine, facts.choices.etcd_disk
        yield Finding(
            ("etcd", role, "disk"),
            f"etcd.{role} disk {etcd.disk} can't be attached to {machine}",
            f"write disk: {disk_to_take}"
            if takes(Cloud.GCP, machine, disk_to_take)
            else f"write a machine type of another series, such as {machine_to_take}",
            also=(("etcd", host, "machine"),),
        )


def pools_of_google(subject: Subject) -> Iterator[Finding]:
    """rdma needs a machine type with Tier_1 networking; reservations need a name that the API accepts."""
    facts = of_cloud(subject)
    if subject.spec.control_plane.cloud is not Cloud.GCP or facts is None:
        return
    for name, pool in subject.spec.pools.items():
        if pool.site is not None:
            continue
        where: Where = ("pools", name)
        machine = facts.machine_types.get(str(pool.machine))
        if pool.rdma and machine and machine.type and not machine.type.gpus and not can_have_tier_1(str(pool.machine)):
            yield Finding(
                (*where, "rdma"),
                f"pools.{name} has rdma, but {pool.machine} has no Tier_1 networking",
                "write a larger machine type, or remove rdma",
                also=((*where, "machine"),),
            )
        if pool.reservation and "/" in pool.reservation and not pool.reservation.startswith(_SHARED):
            message = f"pools.{name}.reservation {pool.reservation} is neither a name nor a path of a reservation in a project"
            hint = "write its name, or projects/<project>/reservations/<name>"
            yield Finding((*where, "reservation"), message, hint)


RULES: tuple[tuple[str, Rule], ...] = (
    ("CLD-009", disks_of_members),
    ("CLD-009", pools_of_google),
)
