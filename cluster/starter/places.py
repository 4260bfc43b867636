"""Choose a region, zones and machine types for a new cluster from the catalogue of its cloud."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cluster import catalogue, hardware
from cluster.artefacts import ARCH
from cluster.catalogue import Catalogue, Machine
from cluster.errors import RefusedError
from cluster.fields import did_you_mean
from cluster.spec import Cloud

_ZONES = 3
"""Members of etcds in three zones survive the loss of one."""
_MOST_GPUS = 8


@dataclass(frozen=True)
class Gpu:
    """A machine type with GPUs. zones: the cluster's zones that offer it. others: more types with the same kind of GPU."""

    kind: str
    machine: Machine
    zones: tuple[str, ...]
    others: tuple[Machine, ...]


@dataclass(frozen=True)
class Place:
    """A place for a cluster. plane, worker: machine types of the control plane and of workers without GPUs."""

    region: str
    zones: tuple[str, ...]
    plane: Machine
    worker: Machine
    gpu: Gpu | None


def choose(cloud: Cloud, region: str, gpu: str) -> Place:
    """Return the place in a region; without a region, in the one that offers the most machine types.

    gpu: a kind from cluster/hardware/gpus.yaml, or a machine type; "" for none.
    Errors: raises RefusedError with the alternatives.
    """
    facts = catalogue.of(cloud)
    places = {name: place for name in _by_offers(facts) if (place := _place(cloud, facts, name, ""))}
    if region and region not in places:
        raise RefusedError(_no_region(cloud, facts, region, sorted(places)), code="init-refused")
    if not gpu:
        return places[region or next(iter(places))]
    with_gpu = {name: place for name in places if (place := _place(cloud, facts, name, gpu))}
    if not with_gpu or (region and region not in with_gpu):
        raise RefusedError(_no_gpu(cloud, facts, region, gpu, sorted(with_gpu)), code="init-refused")
    return with_gpu[region or next(iter(with_gpu))]


def kinds_at_sites(gpu: str) -> str:
    """Return the kind of on-prem machines with a GPU, from cluster/hardware/machines.yaml. Generic baseboards come first."""
    machine_kinds = hardware.machines().kinds
    if gpu in machine_kinds:
        return gpu
    matches = sorted(
        (kind for kind, machine in machine_kinds.items() if machine.gpu == gpu), key=lambda kind: kind.startswith("dgx")
    )
    if not matches:
        kinds = sorted({machine.gpu for machine in machine_kinds.values()})
        raise RefusedError(
            f"no kind of on-prem machines has GPU {gpu}; write one of {', '.join((*kinds, *machine_kinds))}",
            code="init-refused",
        )
    return matches[0]


def _by_offers(facts: Catalogue) -> list[str]:
    """Return the regions that have zones, those that offer the most machine types first."""
    offers = Counter(region for machine in facts.machine_types.values() for region in machine.offered or ())
    return sorted((name for name, zones in facts.regions.zones.items() if zones), key=lambda name: -offers[name])


def _place(cloud: Cloud, facts: Catalogue, region: str, gpu: str) -> Place | None:
    """Return a place in a region; None if a machine type isn't offered in enough zones for a control plane."""
    for plane, worker in (map(facts.machine_types.__getitem__, pair) for pair in facts.choices.machines):
        zones = [zone for zone in _zones(facts, region, plane) if zone in _zones(facts, region, worker)]
        if len(zones) < _ZONES:
            continue
        if not gpu:
            return Place(region, tuple(zones[:_ZONES]), plane, worker, None)
        with_gpu = list(_with_gpu(cloud, facts, region, gpu))
        for kind, machine in with_gpu:
            having = [zone for zone in zones if zone in _zones(facts, region, machine)]
            if having:
                chosen = sorted([*having, *(zone for zone in zones if zone not in having)][:_ZONES], key=zones.index)
                own = tuple(zone for zone in chosen if zone in having)
                others = tuple(other for of, other in with_gpu if of == kind and other is not machine)
                return Place(region, tuple(chosen), plane, worker, Gpu(kind, machine, own, others))
    return None


def _zones(facts: Catalogue, region: str, machine: Machine) -> tuple[str, ...]:
    """Return the zones of a region that offer a machine type: all if zones aren't known, none if the region lacks it.

    Zones of AWS by ID: letters mean different zones in each account.
    """
    offered = (machine.offered or {}).get(region)
    names = facts.regions.zone_ids.get(region) or facts.regions.zones[region]
    return () if offered is None else tuple(name for name in names if name in offered) if offered else names


def _with_gpu(cloud: Cloud, facts: Catalogue, region: str, gpu: str = "") -> Iterator[tuple[str, Machine]]:
    """Yield (kind of GPU, machine type) of a region's offers for one kind or type, or for all.

    In the order of the catalogue's series, and in each series whole machines before parts of them.
    """
    by_series: dict[str, str] = getattr(hardware.clouds(), cloud)
    for series in facts.machines:
        kind = by_series.get(series.series)
        if kind is None or series.arch != ARCH:
            continue
        types = [facts.machine_types[name] for name in series.types]
        offered = [
            machine for machine in types if machine.type and machine.type.gpus and region in (machine.offered or ())
        ]
        for machine in sorted(offered, key=_size):
            if gpu in ("", kind, machine.name):
                yield kind, machine


def _size(machine: Machine) -> tuple[int, int]:
    """Return a sort key: most GPUs first, up to eight; then fewest CPUs."""
    assert machine.type
    return (-machine.type.gpus if machine.type.gpus <= _MOST_GPUS else 0, machine.type.vcpus)


def _no_region(cloud: Cloud, facts: Catalogue, region: str, usable: list[str]) -> str:
    if region in facts.region_names:
        machines = " or ".join(plane for plane, _ in facts.choices.machines)
        why = f"region {region} of {cloud} doesn't have {_ZONES} zones known to offer {machines}"
    else:
        why = f"{cloud} has no region {region}{did_you_mean(region, usable)}"
    return f"{why}\n  write one of {', '.join(usable)}"


def _no_gpu(cloud: Cloud, facts: Catalogue, region: str, gpu: str, elsewhere: list[str]) -> str:
    if region:
        kinds = dict.fromkeys(kind for kind, _ in _with_gpu(cloud, facts, region))
        where = f"; {', '.join(elsewhere)} offer it" if elsewhere else ""
        return f"{cloud}/{region} offers no GPU {gpu}{where}\n  {region} has {', '.join(kinds) or 'none'}"
    by_series: dict[str, str] = getattr(hardware.clouds(), cloud)
    kinds = dict.fromkeys(by_series.values())
    return (
        f"{cloud} offers no GPU {gpu}{did_you_mean(gpu, kinds)}\n  write one of {', '.join(kinds)}, or a machine type"
    )
