"""ETC-001 to ETC-010: each etcd on its own, and the two together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cluster.check.backups import backups
from cluster.check.disks import LOCAL, disk, local_disks
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.layout import member_zones
from cluster.quantities import format_bytes, format_duration_ms
from cluster.spec import EtcdCluster, EtcdHosts, Profile, RoleName

_MOST_MEMBERS = 7  # etcd's FAQ: "an etcd cluster probably should have no more than seven nodes"
_GIB = 2**30
_SMALL_QUOTA, _LARGEST_QUOTA = 2 * _GIB, 8 * _GIB
_LONGEST_ELECTION_MS = 50_000  # etcd refuses more


def _each(subject: Subject) -> tuple[tuple[RoleName, EtcdCluster], ...]:
    return (("main", subject.spec.etcd.main), ("events", subject.spec.etcd.events))


def quorum(members: int) -> int:
    """Return the number of votes that a write needs."""
    return members // 2 + 1


def odd_members(subject: Subject) -> Iterator[Finding]:
    """An even number of members needs one more vote and survives no additional loss."""
    for role, etcd in _each(subject):
        count = etcd.members
        if count % 2:
            continue
        lost, fewer = count - quorum(count), count - 1
        survive = f"{count} survive {lost} lost" if lost else f"{count} survive no loss"
        better = f"Use {fewer} or {count + 1}" if fewer > 1 else "Use 3"
        yield Finding(
            ("etcd", role, "members"),
            f"etcd.{role} has {count} members; {survive}, the same as {fewer}, "
            f"and need {quorum(count)} votes instead of {quorum(fewer)}",
            f"{better[0].lower()}{better[1:]}",
        )


def member_count(subject: Subject) -> Iterator[Finding]:
    """Every write waits for a majority of members; a single member survives no loss."""
    for role, etcd in _each(subject):
        where: Where = ("etcd", role, "members")
        if etcd.members > _MOST_MEMBERS:
            message = f"etcd.{role} has {etcd.members} members; every write waits for {quorum(etcd.members)}"
            yield Finding(where, message, "use 5, which survive 2 lost")
        if etcd.members == 1 and subject.spec.profile is Profile.PRODUCTION:
            message = f"etcd.{role} has 1 member and profile is production; losing it would stop the cluster"
            yield Finding(where, message, "use 3, or profile: development", also=(("profile",),))


def nothing_shared(subject: Subject) -> Iterator[Finding]:
    """Members that run on one host have different ports and data folders."""
    main, events = subject.spec.etcd.main, subject.spec.etcd.events
    if main.hosts is EtcdHosts.MAIN:
        message = "etcd.main.hosts is main; only etcd.events can share the hosts of etcd.main"
        yield Finding(("etcd", "main", "hosts"), message, "write dedicated")
    together = events.hosts is EtcdHosts.MAIN
    if together and events.members > main.members:
        message = f"etcd.events has {events.members} members on the hosts of etcd.main, which has {main.members}"
        hint = f"use {main.members}, or events.hosts: dedicated"
        yield Finding(
            ("etcd", "events", "members"),
            message,
            hint,
            also=(("etcd", "main", "members"), ("etcd", "events", "hosts")),
        )
    yield from _ports(subject, together)
    yield from _folders(subject, together)


def _ports(subject: Subject, together: bool) -> Iterator[Finding]:
    used: dict[tuple[str, int], tuple[str, Where]] = {}
    for role, etcd in _each(subject):
        host = "etcd-main-1" if together else f"etcd-{role}-1"
        for key, port in {"client_port": etcd.client_port, "peer_port": etcd.peer_port}.items():
            where: Where = ("etcd", role, key)
            name, before = f"etcd.{role}.{key}", used.get((host, port))
            if before:
                default = type(etcd).model_fields[key].default
                message = f"{before[0]} and {name} both use {host}:{port}; the second to start would fail"
                hint = f"give {name} another port, for example {default if port != default else default + 10}"
                yield Finding(where, message, hint, also=(before[1],))
            used.setdefault((host, port), (name, where))


def _folders(subject: Subject, together: bool) -> Iterator[Finding]:
    main, events = (f"{etcd.data_dir}/" for _, etcd in _each(subject))
    if together and (main.startswith(events) or events.startswith(main)):
        written = subject.spec.etcd.events.model_fields_set
        where: Where = ("etcd", "events" if "data_dir" in written else "main", "data_dir")
        message = (
            f"etcd.main and etcd.events both keep data in {min(main, events, key=len)[:-1]} on the same hosts; "
            "each would corrupt the other's"
        )
        yield Finding(where, message, f"write /var/lib/etcd/{where[1]}, or leave it out")


def quota_size(subject: Subject) -> Iterator[Finding]:
    """An etcd at its quota refuses every write until an operator compacts it."""
    for role, etcd in _each(subject):
        name, quota, disk = f"etcd.{role}.quota", format_bytes(etcd.quota), format_bytes(etcd.disk_size)
        where: Where = ("etcd", role, "quota")
        size: tuple[Where, ...] = (("etcd", role, "disk_size"),)
        if etcd.quota <= _SMALL_QUOTA:
            message = f"{name} is {quota}; OpenAI's cluster stopped taking writes at 2GiB"
            production = subject.spec.profile is Profile.PRODUCTION
            yield Finding(where, message, "write 8GiB", severity="error" if production else "warning")
        elif etcd.quota > _LARGEST_QUOTA:
            yield Finding(
                where,
                f"{name} {quota} is above 8GiB, the most that etcd supports well; a restart would take minutes",
                "write 8GiB",
            )
        if etcd.disk_size < etcd.quota:
            message = (
                f"{name} {quota} is larger than disk_size {disk}; the disk would fill up before etcd refuses writes"
            )
            yield Finding(where, message, f"write disk_size: {format_bytes(2 * etcd.quota)} or more", also=size)
        elif etcd.disk_size < 2 * etcd.quota:
            message = (
                f"etcd.{role}.disk_size {disk} is under twice the quota {quota}; a defragmentation writes a second copy"
            )
            yield Finding(
                size[0], message, f"write {format_bytes(2 * etcd.quota)} or more", also=(where,), severity="warning"
            )


def zones_survive(subject: Subject) -> Iterator[Finding]:
    """Members fill the first three zones in turn; without any one zone, the rest must still have a quorum."""
    zones = member_zones(subject.spec)
    where: Where = ("control_plane", "zones")
    for role, etcd in _each(subject):
        # ETC-001 or ETC-002 reports any other number of members first.
        usual = 1 < etcd.members <= _MOST_MEMBERS and etcd.members % 2
        if not usual or etcd.allow_single_zone:
            continue
        placed = Counter(zones[index % len(zones)] for index in range(etcd.members))
        zone, most = placed.most_common(1)[0]
        if etcd.members - most >= quorum(etcd.members):
            continue
        held = f"all {most} members are" if most == etcd.members else f"{most} of {etcd.members} members are"
        yield Finding(
            where,
            f"etcd.{role}: {held} in zone {zone}; losing it stops the cluster",
            f"name 3 zones, or set etcd.{role}.allow_single_zone: true",
            also=(("etcd", role, "members"), ("etcd", role, "allow_single_zone")),
        )


def election_timeout(subject: Subject) -> Iterator[Finding]:
    """etcd refuses to start with less than five heartbeats, or with more than 50 s."""
    for role, etcd in _each(subject):
        election, beat = etcd.election_timeout, etcd.heartbeat_interval
        also: tuple[Where, ...] = (("etcd", role, "heartbeat_interval"),)
        where: Where = ("etcd", role, "election_timeout")
        shown = format_duration_ms(election)
        if beat < 1:
            yield Finding(also[0], f"etcd.{role}: heartbeat_interval is {beat}ms; etcd refuses to start", "write 100ms")
        elif election < 5 * beat:
            message = (
                f"etcd.{role}: election_timeout {shown} is under 5 × heartbeat_interval {format_duration_ms(beat)}; "
                "etcd refuses to start"
            )
            yield Finding(where, message, f"write {format_duration_ms(10 * beat)}", also=also)
        if election > _LONGEST_ELECTION_MS:
            message = f"etcd.{role}: election_timeout {shown} is above 50s; etcd refuses to start"
            yield Finding(where, message, "write 1s; the maximum, 50s, is for members on different continents")


def backed_up(subject: Subject) -> Iterator[Finding]:
    """Local disks are lost with their machines. A policy (`stacks.policies.etcd`) checks the same at deployment."""
    main = subject.spec.etcd.main
    if main.disk == LOCAL and main.backup is None and not subject.cluster.is_lab:
        yield Finding(
            ("etcd", "main"),
            "etcd.main is on local disks, which are lost with their machines, and has no backup",
            "add etcd.main.backup: {every: 15m, keep: 30d}, or use a network disk",
            also=(("etcd", "main", "disk"), ("etcd", "main", "backup")),
            severity="error" if subject.spec.profile is Profile.PRODUCTION else "warning",
        )


RULES: tuple[tuple[str, Rule], ...] = (
    ("ETC-001", odd_members),
    ("ETC-002", member_count),
    ("ETC-003", nothing_shared),
    ("ETC-005", quota_size),
    ("ETC-010", backed_up),
    ("ETC-006", zones_survive),
    ("ETC-007", election_timeout),
    ("ETC-008", disk),
    ("ETC-008", local_disks),
    ("ETC-009", backups),
)
