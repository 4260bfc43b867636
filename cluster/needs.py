"""What a cluster needs of its cloud, from its spec: machines by type, place and number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cluster import catalogue
from cluster.layout import counts, member_zones
from cluster.spec import ClusterSpec


@dataclass(frozen=True)
class Use:
    """Machines of one type for one purpose.

    least: those that `up` starts. most: those that it can grow to, with those that are extra while API servers are replaced.
    everywhere: whether every zone must offer the type; for a pool that names no zones, one is enough. image: as the spec
    names it, None for the cloud's Debian.
    """

    what: str
    machine: str
    least: int
    most: int
    zones: tuple[str, ...]
    everywhere: bool = True
    spot: bool = False
    reserved: bool = False
    image: str | None = None


def uses(spec: ClusterSpec, spare: int = 1) -> tuple[Use, ...]:
    """Return what the cluster uses. spare: API servers that the cloud adds while it replaces them."""
    plane = spec.control_plane
    numbers = {kind: count for kind, (_, count) in counts(spec).items()}
    zones = tuple(map(str, plane.zones))
    api = Use("API servers", plane.machine, numbers["api"], numbers["api"] + spare, zones, image=plane.image)
    members = [
        Use(f"etcd {role}", etcd.machine, numbers[kind], numbers[kind], member_zones(spec), image=plane.image)
        for role, kind, etcd in (("main", "etcd-main", spec.etcd.main), ("events", "etcd-events", spec.etcd.events))
        if kind in numbers
    ]
    pools = [
        Use(
            f"pool {name}",
            pool.machine,
            pool.min,
            pool.max,
            spec.zones_of(pool),
            everywhere=bool(pool.zones),
            spot=pool.spot,
            reserved=bool(pool.reservation),
            image=pool.image,
        )
        for name, pool in spec.region_pools.items()
        if pool.machine
    ]
    return (api, *members, *pools)


def machine_types(used: Iterable[Use]) -> list[str]:
    return sorted({use.machine for use in used})


def vcpus(spec: ClusterSpec, machine: str) -> int | None:
    """Return the vCPUs of a machine type according to the catalogue, None if it does not know them."""
    entry = catalogue.of(spec.control_plane.cloud).machine_types.get(machine)
    return entry.type.vcpus if entry and entry.type else None


def gpus(spec: ClusterSpec, machine: str) -> tuple[str, int]:
    """Return kind and number of a machine type's GPUs; ("", 0) if it has none, or the catalogue does not know it."""
    entry = catalogue.of(spec.control_plane.cloud).machine_types.get(machine)
    if entry is None or entry.type is None or entry.series is None or entry.series.gpu is None:
        return "", 0
    return entry.series.gpu.kind, entry.type.gpus


def images(used: Iterable[Use]) -> dict[str | None, list[Use]]:
    """Return image -> what uses it."""
    by_image: dict[str | None, list[Use]] = {}
    for use in used:
        by_image.setdefault(use.image, []).append(use)
    return by_image
