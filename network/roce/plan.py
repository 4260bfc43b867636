"""The plan of a fabric test: which hosts on which rails, in which rounds, for how long. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from cluster.errors import RefusedError
from cluster.pools import Host
from cluster.roce import Roce
from cluster.spec import Cluster
from network.roce import wire
from network.roce.rounds import count, rounds, seconds

OVERHEAD_S = 5
"""Assumed, not measured: connecting, registering memory, and perftest's wait of one second at both ends."""


@dataclass(frozen=True)
class MeasurementOptions:
    """Options of a test.

    seconds: per pair. message: bytes. queues: queue pairs that perftest uses at once. parallel: pairs measured at a time.
    most: rounds per rail, None for all.
    """

    seconds: int = 5
    message: int = wire.MESSAGE
    queues: int = 4
    parallel: int = 64
    most: int | None = None


@dataclass(frozen=True)
class Rail:
    """The ports of one rail at a site."""

    site: str
    name: str
    roce: Roce
    hosts: tuple[Host, ...]

    @property
    def key(self) -> str:
        return f"{self.site}/{self.name}"

    def pairs(self) -> int:
        return len(self.hosts) * (len(self.hosts) - 1) // 2

    def rounds(self, most: int | None = None) -> Iterator[tuple[tuple[Host, Host], ...]]:
        for number, pairs in enumerate(rounds(self.hosts)):
            if most is not None and number >= most:
                return
            yield pairs


@dataclass(frozen=True)
class MeasurementPlan:
    cluster: str
    rails: tuple[Rail, ...]
    options: MeasurementOptions

    def seconds(self) -> float:
        """Return the expected duration, which includes `OVERHEAD_S` for each pair."""
        return sum(self._seconds(rail) for rail in self.rails)

    def _seconds(self, rail: Rail) -> float:
        whole = seconds(len(rail.hosts), self.options.seconds + OVERHEAD_S, self.options.parallel)
        total = count(len(rail.hosts))
        return whole * min(self.options.most or total, total) / total if total else 0.0

    def fingerprint(self) -> str:
        """Return a digest. Plans with equal digests may share a file of results: they measure the same ports in the same way."""
        content = {
            "cluster": self.cluster,
            "seconds": self.options.seconds,
            "message": self.options.message,
            "queues": self.options.queues,
            "rails": {rail.key: [rail.roce.mtu, *(host.name for host in rail.hosts)] for rail in self.rails},
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def plan(
    cluster: Cluster, options: MeasurementOptions, *, only_rails: Sequence[str] = (), limit: Sequence[str] = ()
) -> MeasurementPlan:
    """Return the plan for all rails of all sites, or for a selection.

    only_rails: rail or site/rail. limit: host names or patterns. Raises RefusedError that lists the existing names.
    """
    if not any(site.roce for site in cluster.spec.sites.values()):
        raise RefusedError(f"{cluster.name} has no RDMA: no site in its spec has roce", code="no-rdma")
    all_rails = tuple(_rails(cluster))
    names = [host.name for rail in all_rails for host in rail.hosts]
    for pattern in limit:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise RefusedError(f"--limit {pattern} matches no host with RDMA; there are {_some(names)}", code="no-rdma")
    for name in only_rails:
        if name not in {label for rail in all_rails for label in (rail.name, rail.key)}:
            raise RefusedError(
                f"there is no rail {name}; there are {_some([rail.key for rail in all_rails])}", code="no-rdma"
            )
    chosen = [rail for rail in all_rails if not only_rails or {rail.name, rail.key} & set(only_rails)]
    limited = [Rail(rail.site, rail.name, rail.roce, _limited(rail.hosts, limit)) for rail in chosen]
    usable = tuple(rail for rail in limited if len(rail.hosts) > 1)
    if not usable:
        raise RefusedError("no rail has two of the selected hosts; a pair needs two", code="no-rdma")
    return MeasurementPlan(cluster.name, usable, options)


def _rails(cluster: Cluster) -> Iterator[Rail]:
    for site, declared in cluster.spec.sites.items():
        if declared.roce is None:
            continue
        pools = {pool: rails for pool, rails in declared.roce.rails.items() if cluster.spec.pools[pool].site == site}
        for name in dict.fromkeys(rail for rails in pools.values() for rail in rails):
            hosts = [host for pool, rails in pools.items() if name in rails for host in cluster.hosts.get(pool, ())]
            yield Rail(site, name, declared.roce, tuple(hosts))


def _limited(hosts: tuple[Host, ...], limit: Sequence[str]) -> tuple[Host, ...]:
    return tuple(host for host in hosts if not limit or any(fnmatchcase(host.name, pattern) for pattern in limit))


def _some(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique) if len(unique) <= 4 else f"{unique[0]} … {unique[-1]} ({len(unique)})"
