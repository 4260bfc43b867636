"""CPH-001 to CPH-006: the storage of sites. The model reports CPH-005 too; hosts report CPH-007."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import NamedTuple

from cluster.ceph import USABLE, Ceph, FailureDomain, most_data
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.fields import did_you_mean, near
from cluster.pools import Host
from cluster.quantities import format_bytes
from cluster.spec import Profile


class _Storage(NamedTuple):
    """A site's Ceph, its place in the spec, and its hosts."""

    site: str
    where: Where
    ceph: Ceph
    hosts: tuple[Host, ...]

    def per_rack(self) -> Counter[str]:
        return Counter(host.rack for host in self.hosts)


def _storages(subject: Subject) -> Iterator[_Storage]:
    for name, site in subject.spec.sites.items():
        if site.ceph:
            here = [pool for pool in site.ceph.hosts if pool in _pools_at(subject, name)]
            hosts = tuple(host for pool in dict.fromkeys(here) for host in subject.cluster.hosts.get(pool, ()))
            yield _Storage(name, ("sites", name, "ceph"), site.ceph, hosts)


def _pools_at(subject: Subject, site: str) -> list[str]:
    return [name for name, pool in subject.spec.pools.items() if pool.site == site]


def monitors(subject: Subject) -> Iterator[Finding]:
    """A majority of monitors must survive: each needs its own host, and no rack may hold a majority."""
    for _, where, ceph, hosts in _storages(subject):
        place, count = (*where, "monitors"), ceph.monitors
        also: tuple[Where, ...] = ((*where, "hosts"),)
        racks = len({host.rack for host in hosts})
        if count % 2 == 0:
            odd = " or ".join(str(each) for each in (count - 1, count + 1) if each > 1)
            yield Finding(
                place, f"monitors is {count}, an even number; it survives no more losses than {count - 1}", f"use {odd}"
            )
        elif count == 1 and subject.spec.profile is Profile.PRODUCTION:
            yield Finding(place, "monitors is 1: all storage stops when its host does", "use 3", also=(("profile",),))
        elif hosts and count > len(hosts):
            message = (
                f"monitors is {count} but there are only {len(hosts)} storage hosts; each monitor needs its own host"
            )
            yield Finding(place, message, f"add hosts, or write monitors: {_odd(len(hosts))}", also=also)
        elif hosts and count > 1 and racks < 3 and ceph.failure_domain is FailureDomain.RACK:
            message = f"monitors is {count} on {racks} racks: the loss of one rack can take a majority of them, and stop all storage"
            hint = "spread the storage hosts over 3 racks, or write failure_domain: host"
            yield Finding(place, message, hint, also=(*also, (*where, "failure_domain")))


def _odd(number: int) -> int:
    return number if number % 2 else max(number - 1, 1)


def replicas(subject: Subject) -> Iterator[Finding]:
    """Each replica needs its own failure domain. With a single replica, a dead disk means lost data."""
    for storage in _storages(subject):
        _, where, ceph, hosts = storage
        place, also = (*where, "replicas"), ((*where, "hosts"), (*where, "failure_domain"))
        racks, size = storage.per_rack(), ceph.replicas
        if size == 1 and subject.spec.profile is Profile.PRODUCTION:
            message = "replicas is 1: data is lost with its disk"
            yield Finding(place, message, "write replicas: 3", also=(("profile",),))
        elif size == 2:
            message = "replicas is 2: while one disk is being replaced, a bad sector on the other loses data"
            yield Finding(place, message, "write replicas: 3", severity="warning")
        if hosts and size > len(hosts):
            message = f"replicas is {size} but there are only {len(hosts)} storage hosts"
            yield Finding(place, message, f"add hosts, or write replicas: {len(hosts)}", also=also)
        elif hosts and size > len(racks) and ceph.failure_domain is FailureDomain.RACK:
            message = (
                f"replicas is {size} but storage hosts are in only {len(racks)} racks; each replica needs its own rack"
            )
            hint = f"add hosts in other racks, or write failure_domain: host (now {', '.join(sorted(racks))})"
            yield Finding(place, message, hint, also=also)


def storage_hosts(subject: Subject) -> Iterator[Finding]:
    """One site has Ceph, with machines of that site, whose names are usable in Ceph's CRUSH map."""
    sites = [name for name, site in subject.spec.sites.items() if site.ceph]
    for name in sites[1:]:
        message = f"sites {sites[0]} and {name} both have ceph; Rook's release grants rights for one Ceph, in rook-ceph"
        yield Finding(
            ("sites", name, "ceph"), message, "split it into two clusters", also=(("sites", sites[0], "ceph"),)
        )
    for site, where, ceph, hosts in _storages(subject):
        candidates = _pools_at(subject, site)
        for index, name in enumerate(ceph.hosts):
            place: Where = (*where, "hosts", index)
            pool = subject.spec.pools.get(name)
            if pool is None:
                message = f"ceph.hosts names {name}, which isn't a pool{did_you_mean(name, candidates)}"
                hint = f"write {(near(name, candidates) or candidates)[0]}" if candidates else f"add a pool at {site}"
                yield Finding(place, message, hint, also=(("pools", name),))
            elif pool.site != site:
                at = f"at {pool.site}" if pool.site else "in the region, whose machines have no disks for it"
                message = f"ceph.hosts of {site} names {name}, which is {at}"
                yield Finding(place, message, f"name a pool at {site}", also=(("pools", name, "site"),))
            elif not subject.cluster.hosts.get(name):
                yield Finding(
                    place, f"ceph.hosts names {name}, which has no machines", "list machines in its hosts file"
                )
            elif name in ceph.hosts[:index]:
                yield Finding(place, f"ceph.hosts names {name} twice", "remove one of the two")
        # CRUSH has one namespace for hosts, racks and its root.
        for name in sorted({host.name for host in hosts} & {"default", *(host.rack for host in hosts)}):
            message = f"a storage host and a rack are both called {name}; names in Ceph's CRUSH map must be unique"
            yield Finding((*where, "hosts"), message, "rename one of them")


def networks(subject: Subject) -> Iterator[Finding]:
    """A daemon without an address in Ceph's networks doesn't start."""
    spec = subject.spec
    for site, where, ceph, hosts in _storages(subject):
        racks = spec.sites[site].racks
        for index, network in enumerate(ceph.networks.public):
            if not any(network.subnet_of(rack) or rack.subnet_of(network) for rack in racks.values()):
                place: Where = (*where, "networks", "public", index)
                message = (
                    f"networks.public {network} is outside the racks of {site}; no storage host has an address there"
                )
                ranges = ", ".join(str(racks[name]) for name in sorted({host.rack for host in hosts}))
                hint = f"write {ranges}, or leave public out" if ranges else "leave public out"
                yield Finding(place, message, hint, also=(("sites", site, "racks"),))
        public = ceph.networks.public or tuple(racks.values())
        outside = [host for host in hosts if not any(host.address in network for network in public)]
        if outside and all(any(network.overlaps(rack) for rack in racks.values()) for network in public):
            host = outside[0]
            message = f"{host.name} {host.address} is in none of networks.public; its daemons would not start"
            hint = f"add {racks.get(host.rack, 'its rack')}, or leave public out"
            yield Finding((*where, "networks", "public"), message, hint, also=((*where, "hosts"),))
        yield from _cluster_networks(subject, where, ceph)


def _cluster_networks(subject: Subject, where: Where, ceph: Ceph) -> Iterator[Finding]:
    """Networks for replication are on separate ports, so they may not overlap any other range."""
    ranges = subject.spec.network
    taken: list[tuple[Where, IPv4Network]] = [
        (("network", "pods"), ranges.pods),
        (("network", "services"), ranges.services),
        (("network", "nodes"), ranges.nodes),
    ]
    for name, site in subject.spec.sites.items():
        taken += [(("sites", name, "racks", rack), network) for rack, network in site.racks.items()]
    for index, network in enumerate(ceph.networks.cluster):
        for place, other in taken:
            if network.overlaps(other):
                what = show(place)
                message = f"networks.cluster {network} overlaps {what} ({other}); replication would share it with other traffic"
                hint = "write the range of the storage hosts' second port, or leave cluster out"
                yield Finding((*where, "networks", "cluster", index), message, hint, also=(place,))


def disks(subject: Subject) -> Iterator[Finding]:
    """A rule selects disks on purpose, and no disk matches two rules."""
    for _, where, ceph, _ in _storages(subject):
        rules: dict[str, str] = {}
        for name, kind in ceph.disks.items():
            place: Where = (*where, "disks", name)
            if kind.names_no_model and not kind.allow_every_disk:
                message = f"disks.{name} by_id {kind.by_id} matches every empty disk, including disks meant for something else"
                hint = "name the model, for example nvme-SAMSUNG_MZQL23T8HCLS*, or write allow_every_disk: true"
                yield Finding((*place, "by_id"), message, hint, also=((*place, "allow_every_disk"),))
            if kind.max_size is not None and kind.max_size < kind.min_size:
                sizes = f"max_size {format_bytes(kind.max_size)} is below min_size {format_bytes(kind.min_size)}"
                yield Finding((*place, "max_size"), f"disks.{name}: {sizes}; no disk matches", "swap the two")
            before = rules.setdefault(kind.by_id, name)
            if before != name and _may_share(ceph, before, name):
                message = f"disks.{name} and disks.{before} both have by_id {kind.by_id}, and their sizes don't tell them apart"
                yield Finding((*place, "by_id"), message, "correct or remove one", also=((*where, "disks", before),))


def _may_share(ceph: Ceph, name: str, other: str) -> bool:
    """Return whether a disk can match both rules."""
    first, second = ceph.disks[name], ceph.disks[other]
    least, most = max(first.min_size, second.min_size), [each.max_size for each in (first, second) if each.max_size]
    return first.rotational == second.rotational and all(least <= size for size in most)


def quotas(subject: Subject) -> Iterator[Finding]:
    """Quotas protect teams from each other only if all of them fit together."""
    for storage in _storages(subject):
        _, where, ceph, hosts = storage
        total: Counter[str] = Counter()
        disks_known = True
        for name, team in ceph.teams.items():
            place: Where = (*where, "teams", name)
            if team.disks is not None and team.disks not in ceph.disks:
                disks_known = False
                message = f"team {name} is on disks {team.disks}, which ceph.disks lacks{did_you_mean(team.disks, ceph.disks)}"
                hint = f"write {(near(team.disks, ceph.disks) or list(ceph.disks))[0]}, or leave it out"
                yield Finding((*place, "disks"), message, hint, also=((*where, "disks"),))
                continue
            if not team.quotas:
                yield Finding(
                    place, f"team {name} has no quota, so it can't store anything", "write block, file or object: 10TiB"
                )
            for kind, size in team.quotas.items():
                if not size:
                    message = f"team {name} has a quota of 0 for {kind}, which Ceph reads as no quota"
                    yield Finding((*place, kind), message, "write a size, or leave it out")
                total[ceph.disks_of(kind, team)] += size
        for name, rule in ceph.disks.items() if disks_known and hosts else ():
            room = int(most_data(_capacities(storage, name), ceph.replicas) * USABLE)
            if room and total[name] > room:
                per_host = f"{rule.count} of {format_bytes(rule.min_size)}"
                message = (
                    f"quotas on disks {name} add up to {_tib(total[name])}; {len(hosts)} hosts with {per_host} hold "
                    f"{_tib(room)} of data ({ceph.replicas} replicas, {USABLE:.0%} full)"
                )
                also: tuple[Where, ...] = ((*where, "disks"), (*where, "hosts"), (*where, "replicas"))
                yield Finding((*where, "teams"), message, "lower quotas, or add hosts or disks", also=also)


def _capacities(storage: _Storage, disks: str) -> list[int]:
    """Return the bytes of each failure domain."""
    per_host = storage.ceph.disks[disks].count * storage.ceph.disks[disks].min_size
    if storage.ceph.failure_domain is FailureDomain.HOST:
        return [per_host] * len(storage.hosts)
    return [count * per_host for count in storage.per_rack().values()]


def _tib(size: int) -> str:
    return f"{size / 2**40:.1f}TiB"


RULES: tuple[tuple[str, Rule], ...] = (
    ("CPH-001", monitors),
    ("CPH-002", replicas),
    ("CPH-003", storage_hosts),
    ("CPH-004", networks),
    ("CPH-005", disks),
    ("CPH-006", quotas),
)
