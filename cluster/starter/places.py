"""Where a new cluster is and on which machines: a region, its zones and machine types, as the catalogue of the cloud has them."""

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
"""Etcd's members survive the loss of one of three."""
_MOST_GPUS = 8
# Control plane and workers: the first pair that a region offers in three zones.
_MACHINES = {
    Cloud.AWS: (("m7i.large", "m7i.2xlarge"), ("m6i.large", "m6i.2xlarge")),
    Cloud.AZURE: (("Standard_D4s_v5", "Standard_D8s_v5"), ("Standard_D4s_v6", "Standard_D8s_v6")),
    Cloud.GCP: (("c3-standard-4", "c3-standard-8"), ("n4-standard-4", "n4-standard-8")),
}


@dataclass(frozen=True)
class Gpu:
    """A machine type with GPUs. zones: those of the cluster that have it. others: more types with the same kind."""

    kind: str
    machine: Machine
    zones: tuple[str, ...]
    others: tuple[Machine, ...]


@dataclass(frozen=True)
class Place:
    """plane, worker: machine types of the control plane and of workers without GPUs."""

    region: str
    zones: tuple[str, ...]
    plane: Machine
    worker: Machine
    gpu: Gpu | None


def choose(cloud: Cloud, region: str, gpu: str) -> Place:
    """The place in a region, or in the one of the cloud's that offers most machine types. RefusedError says what there is.

    gpu: a kind, as cluster/hardware/gpus.yaml names it, or a machine type; "" for none.
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
    """The kind of a site's machines with a GPU: one of cluster/hardware/machines.yaml, of which baseboards of any maker come first."""
    known = hardware.machines().kinds
    if gpu in known:
        return gpu
    found = sorted(
        (kind for kind, machine in known.items() if machine.gpu == gpu), key=lambda kind: kind.startswith("dgx")
    )
    if not found:
        kinds = sorted({machine.gpu for machine in known.values()})
        raise RefusedError(
            f"no kind of machines of your own has GPU {gpu}; write one of {', '.join((*kinds, *known))}",
            code="init-refused",
        )
    return found[0]


def _by_offers(facts: Catalogue) -> list[str]:
    """Regions that have zones, that which offers most machine types first."""
    offers = Counter(region for machine in facts.machine_types.values() for region in machine.offered or ())
    return sorted((name for name, zones in facts.regions.zones.items() if zones), key=lambda name: -offers[name])


def _place(cloud: Cloud, facts: Catalogue, region: str, gpu: str) -> Place | None:
    """None where the region lacks a machine type, or has it in fewer zones than a control plane needs."""
    for plane, worker in (map(facts.machine_types.__getitem__, pair) for pair in _MACHINES[cloud]):
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
    """Zones of a region that offer a machine type: all where nothing is known of zones, none where the region lacks it.

    AWS's by ID: letters are other zones in each account."""
    offered = (machine.offered or {}).get(region)
    names = facts.regions.zone_ids.get(region) or facts.regions.zones[region]
    return () if offered is None else tuple(name for name in names if name in offered) if offered else names


def _with_gpu(cloud: Cloud, facts: Catalogue, region: str, gpu: str = "") -> Iterator[tuple[str, Machine]]:
    """(kind of GPU, machine type) that a region offers: of one kind or type, or all. In the order of the catalogue's series;
    of a series, whole machines before parts of them."""
    known: dict[str, str] = getattr(hardware.clouds(), cloud)
    for series in facts.machines:
        kind = known.get(series.series)
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
    """Most GPUs first, but no more than eight; then the fewest CPUs."""
    assert machine.type
    return (-machine.type.gpus if machine.type.gpus <= _MOST_GPUS else 0, machine.type.vcpus)


def _no_region(cloud: Cloud, facts: Catalogue, region: str, usable: list[str]) -> str:
    if region in facts.region_names:
        machines = " or ".join(plane for plane, _ in _MACHINES[cloud])
        why = f"region {region} of {cloud} has no {_ZONES} zones that are known to offer {machines}"
    else:
        why = f"{cloud} has no region {region}{did_you_mean(region, usable)}"
    return f"{why}\n  write one of {', '.join(usable)}"


def _no_gpu(cloud: Cloud, facts: Catalogue, region: str, gpu: str, elsewhere: list[str]) -> str:
    if region:
        kinds = dict.fromkeys(kind for kind, _ in _with_gpu(cloud, facts, region))
        where = f"; it is in {', '.join(elsewhere)}" if elsewhere else ""
        return f"{cloud}/{region} offers no GPU {gpu}{where}\n  {region} has {', '.join(kinds) or 'none'}"
    known: dict[str, str] = getattr(hardware.clouds(), cloud)
    kinds = dict.fromkeys(known.values())
    return (
        f"{cloud} offers no GPU {gpu}{did_you_mean(gpu, kinds)}\n  write one of {', '.join(kinds)}, or a machine type"
    )
