"""Pools of workers: the cards of those in the region and at sites, and their GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cluster import catalogue, hardware
from cluster.catalogue.model import Machine
from cluster.pools import Pool
from cluster.sites import Site
from cluster.spec import Cluster, ClusterSpec
from components.drawing.cards import Card


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a pool. each: of one machine. most: of all machines, in the region when the pool is at its `max`."""

    each: int
    kind: str
    most: int

    def __str__(self) -> str:
        return f"{self.each} × {self.kind}"


def gpus(cluster: Cluster, name: str) -> Gpus | None:
    """Return the GPUs of a pool; None without GPUs, and if neither spec nor catalogues say what its machines have."""
    pool, cloud = cluster.spec.pools[name], cluster.spec.control_plane.cloud
    machines = pool.max if pool.site is None else len(cluster.hosts.get(name, ()))
    expected = hardware.of_pool(cloud, pool)
    if expected and expected.gpus:
        return Gpus(expected.gpus.count, expected.gpus.product, expected.gpus.count * machines)
    # The hardware catalogue omits GPUs that clusters can't use yet, such as AMD's.
    entry = machine_type(cluster.spec, pool.machine) if pool.site is None and pool.machine else None
    if entry is None or entry.type is None or not entry.type.gpus:
        return None
    kind = entry.series.gpu.kind if entry.series and entry.series.gpu else "GPU"
    return Gpus(entry.type.gpus, kind, entry.type.gpus * machines)


def most_gpus(cluster: Cluster) -> int:
    """Return how many GPUs the cluster's pools have, in the region when they are at their `max`."""
    return sum(own.most for name in cluster.spec.pools if (own := gpus(cluster, name)))


def machine_type(spec: ClusterSpec, machine: str) -> Machine | None:
    """Return the catalogue's entry of a machine type; None if there is none."""
    cloud = spec.control_plane.cloud
    return catalogue.of(cloud).machine_types.get(machine) if cloud in catalogue.CLOUDS else None


def machine_facts(spec: ClusterSpec, machine: str) -> str:
    """Return CPUs and memory of a machine type; "" if the catalogue doesn't have them."""
    entry = machine_type(spec, machine)
    return f"{entry.type.vcpus} vCPU, {entry.type.memory_gb:g} GB" if entry and entry.type else ""


def region_cards(cluster: Cluster) -> Iterator[Card]:
    """Yield the cards of the pools in the region."""
    for name, pool in cluster.spec.pools.items():
        if pool.site is None and pool.machine:
            lines = (
                f"{pool.min}–{pool.max} × {pool.machine}",
                machine_facts(cluster.spec, pool.machine),
                *_gpu_lines(cluster, name),
                f"in {zones(pool.zones)}" if pool.zones else "",
                ", ".join(filter(None, ("spot" * pool.spot, pool.placement or "", "RDMA" * pool.rdma))),
                f"reservation {pool.reservation}" if pool.reservation else "",
                *_scheduling(pool),
            )
            yield _card(name, lines)


def site_cards(cluster: Cluster, name: str) -> Iterator[Card]:
    """Yield the cards of the pools at a site."""
    site = cluster.spec.sites[name]
    for pool_name, pool in cluster.spec.pools.items():
        if pool.site == name:
            lines = (
                _machines(len(cluster.hosts.get(pool_name, ())), pool),
                _site_facts(cluster, pool),
                *_gpu_lines(cluster, pool_name),
                f"driver {pool.driver_branch}" if pool.driver_branch else "",
                _uses(site, pool_name),
                *_scheduling(pool),
            )
            yield _card(pool_name, lines)


def zones(names: tuple[int | str, ...]) -> str:
    """Return zones as text: ``zones 1, 2, 3``."""
    return f"{'zones' if len(names) > 1 else 'zone'} {', '.join(map(str, names))}"


def _card(name: str, lines: tuple[str, ...]) -> Card:
    return Card(f"pool-{name}", f"pool {name}", tuple(filter(None, lines)))


def _gpu_lines(cluster: Cluster, name: str) -> Iterator[str]:
    if own := gpus(cluster, name):
        yield f"{own} each"
        yield f"{'up to ' * (cluster.spec.pools[name].site is None)}{own.most:,} GPUs"


def _machines(count: int, pool: Pool) -> str:
    if pool.hardware:
        return f"{count:,} × {pool.hardware}"
    return "1 machine" if count == 1 else f"{count:,} machines"


def _site_facts(cluster: Cluster, pool: Pool) -> str:
    """Return CPUs and memory of a machine at a site; "" if its kind doesn't say."""
    expected = hardware.of_pool(cluster.spec.control_plane.cloud, pool)
    if expected is None:
        return ""
    cpus = f"{expected.cpus} CPUs" if expected.cpus else ""
    return ", ".join(filter(None, (cpus, f"{expected.memory_gib:g} GiB" if expected.memory_gib else "")))


def _uses(site: Site, pool: str) -> str:
    """Return what the site uses the pool's machines for besides pods."""
    rails = len(site.roce.rails.get(pool, ())) if site.roce else 0
    is_storage = site.ceph is not None and pool in site.ceph.hosts
    return ", ".join(filter(None, (f"{rails} RDMA rails" if rails else "", "storage hosts" * is_storage)))


def _scheduling(pool: Pool) -> Iterator[str]:
    yield from (f"{key}={value}" for key, value in pool.labels.items())
    yield from (f"taint {taint.key}={taint.value}:{taint.effect}" for taint in pool.taints)
