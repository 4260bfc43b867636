"""CLD-001 to CLD-003, CLD-006: regions, zones and machine types that the spec names and its cloud has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cluster import artefacts, catalogue
from cluster.catalogue import Catalogue, Machine
from cluster.check.finding import Finding, Rule, Subject
from cluster.check.region import named_as_in
from cluster.document import Where
from cluster.fields import near
from cluster.layout import member_zones
from cluster.problems import Severity
from cluster.spec import Cloud, ClusterSpec, EtcdHosts

_CLOUD: Where = ("control_plane", "cloud")
_REGION: Where = ("control_plane", "region")
_ZONES: Where = ("control_plane", "zones")

_ALIKE = 0.75  # useast matches eastus in full, and westus not quite
_REGIONS_NAMED = 6


@dataclass(frozen=True)
class _Use:
    """A machine type that the spec names.

    zones: where its hosts run.
    everywhere: all these zones must offer it; for a pool that names no zones, one is enough.
    """

    where: Where
    what: str
    machine: str
    zones: tuple[str, ...]
    everywhere: bool = True


def of_cloud(subject: Subject) -> Catalogue | None:
    """Return the catalogue of the spec's cloud; None for a lab."""
    cloud = subject.spec.control_plane.cloud
    return catalogue.of(cloud) if cloud in catalogue.CLOUDS else None


def known_region(subject: Subject) -> Iterator[Finding]:
    """The region is one of the cloud's."""
    plane, facts = subject.spec.control_plane, of_cloud(subject)
    if facts is None or plane.region in facts.region_names:
        return
    best = _alike(plane.region, facts.region_names, 2, _ALIKE)
    message = f'{plane.cloud} has no region "{plane.region}"{_did_you_mean(best)}'
    hint = f"write {best[0] if best else f'a region of {plane.cloud}'}"
    yield Finding(_REGION, message, unless_newer(hint, facts), also=(_CLOUD,), unknown=True)


def known_zones(subject: Subject) -> Iterator[Finding]:
    """The zones are in the region. CFG-006 reports names that no zone of this region could have."""
    plane, facts = subject.spec.control_plane, of_cloud(subject)
    if facts is None or plane.region not in facts.regions.zones:
        return
    place, zones = f"{plane.cloud}/{plane.region}", facts.regions.zones[plane.region]
    if not zones:
        zoned = _alike(plane.region, [region for region, inside in facts.regions.zones.items() if inside], 1)
        message = f"{place} has no availability zones, which a control plane needs"
        hint = unless_newer(f"write a region that has zones, for example {zoned[0]}", facts)
        yield Finding(_REGION, message, hint, also=(_CLOUD, _ZONES), unknown=True)
        return
    ids = facts.regions.zone_ids.get(plane.region, ())
    for index, zone in enumerate(plane.zones):
        if str(zone) in (*zones, *ids) or not named_as_in(plane.cloud, plane.region, zone):
            continue
        names = zones if not ids or _is_letter(plane.cloud, str(zone)) else ids
        message = f"{place} has no zone {zone}; its zones are {', '.join(names)}"
        free = [name for name in names if name not in map(str, plane.zones)] or list(names)
        hint = unless_newer(f"write {(near(str(zone), free) or free)[0]}", facts)
        # AWS shows each account its own selection of a region's letters.
        severity: Severity = "warning" if _is_letter(plane.cloud, str(zone)) else "error"
        where: Where = (*_ZONES, index)
        yield Finding(where, message, hint, also=(_CLOUD, _REGION), severity=severity, unknown=True)


def known_machine(subject: Subject) -> Iterator[Finding]:
    """Machine types are of this cloud, not of another one."""
    plane, facts = subject.spec.control_plane, of_cloud(subject)
    if facts is None:
        return
    for use in _uses(subject.spec):
        if use.machine in facts.machine_types:
            continue
        also = (_CLOUD, _REGION)
        owner = next((cloud for cloud in catalogue.CLOUDS if use.machine in catalogue.of(cloud).machine_types), None)
        if owner:
            message = f"{use.machine} is {_an(owner)} size, but this {use.what} is in {plane.cloud}"
            best = _counterpart(catalogue.of(owner).machine_types[use.machine], facts, plane.region)
            yield Finding(use.where, message, f"write {best or f'{_an(plane.cloud)} size'}", also=also)
            continue
        alike = near(use.machine, facts.machine_types)
        message = f"{use.machine} isn't {_an(plane.cloud)} size{_did_you_mean(alike)}"
        hint = f"write {alike[0] if alike else f'{_an(plane.cloud)} size'}"
        yield Finding(use.where, message, unless_newer(hint, facts), also=also, unknown=True)


def offered(subject: Subject) -> Iterator[Finding]:
    """Not every region has every machine type, nor does every zone of a region."""
    plane, facts = subject.spec.control_plane, of_cloud(subject)
    if facts is None or plane.region not in facts.regions_with_offers:
        return
    for use in _uses(subject.spec):
        machine = facts.machine_types.get(use.machine)
        places = machine.offered if machine else None
        if places is None:
            continue
        if plane.region in places:
            yield from _in_zones(use, places[plane.region], subject.spec, facts)
            continue
        regions = _alike(plane.region, places, _REGIONS_NAMED)
        more = f" and {len(places) - len(regions)} more" if len(places) > len(regions) else ""
        message = f"{use.machine} isn't offered in {plane.cloud}/{plane.region}; offered in {', '.join(regions)}{more}"
        hint = unless_newer(f"write a size that {plane.region} has, or another region", facts)
        yield Finding(use.where, message, hint, also=(_CLOUD, _REGION), unknown=True)


def _in_zones(use: _Use, offered: tuple[str, ...], spec: ClusterSpec, facts: Catalogue) -> Iterator[Finding]:
    """Check that the zones of a region that offers the machine type do as well. Yields nothing if that isn't known."""
    plane = spec.control_plane
    region_zones = (*facts.regions.zones.get(plane.region, ()), *facts.regions.zone_ids.get(plane.region, ()))
    checked = [zone for zone in use.zones if zone in region_zones and not _is_letter(plane.cloud, zone)]
    lacking = [zone for zone in checked if zone not in offered]
    if not offered or not lacking or not (use.everywhere or len(lacking) == len(use.zones)):
        return
    # Azure numbers zones differently for each subscription; only the count of zones with the machine type is common.
    certain = plane.cloud is not Cloud.AZURE or (use.everywhere and len(checked) > len(offered))
    place = f"{plane.cloud}/{plane.region} {_zones(lacking)}"
    hint = "write another size, or other control_plane.zones"
    yield Finding(
        use.where,
        f"{use.machine} isn't offered in {place}; offered there in {_zones(offered)}",
        unless_newer(hint, facts) if certain else hint,
        () if certain else ("azure numbers zones differently for each subscription: yours may have it there",),
        (_CLOUD, _REGION, _ZONES),
        "error" if certain else "warning",
        unknown=certain,
    )


def architecture(subject: Subject) -> Iterator[Finding]:
    """All programs are downloaded for one processor architecture."""
    facts = of_cloud(subject)
    if facts is None:
        return
    for use in _uses(subject.spec):
        machine = facts.machine_types.get(use.machine)
        if machine and machine.arch not in (None, artefacts.ARCH):
            message = f"{use.machine} has {machine.arch} processors, but all programs of a cluster are built for {artefacts.ARCH}"
            yield Finding(use.where, message, f"write {_an(artefacts.ARCH)} size", also=(_CLOUD,))


def _uses(spec: ClusterSpec) -> Iterator[_Use]:
    """Yield every machine type that the spec names. Hosts fill zones in turn."""
    plane, etcd = spec.control_plane, spec.etcd
    zones = tuple(dict.fromkeys(map(str, plane.zones)))
    yield _Use(("control_plane", "machine"), "control plane", plane.machine, zones[: plane.api_servers])
    members = member_zones(spec)
    yield _Use(("etcd", "main", "machine"), "etcd", etcd.main.machine, members[: etcd.main.members])
    if etcd.events.hosts is EtcdHosts.DEDICATED:
        yield _Use(("etcd", "events", "machine"), "etcd", etcd.events.machine, members[: etcd.events.members])
    for name, pool in spec.pools.items():
        if pool.site is None and pool.machine is not None:
            own = tuple(map(str, pool.zones))
            yield _Use(("pools", name, "machine"), "pool", pool.machine, own or zones, everywhere=bool(own))


def _counterpart(machine: Machine, facts: Catalogue, region: str) -> str:
    """Return the machine type of this region most similar to one of another cloud; "" if that isn't known."""
    if machine.series is None or machine.type is None:
        return ""
    original, kind = machine.type, machine.series.gpu and machine.series.gpu.kind
    best: tuple[tuple[object, ...], str] | None = None
    for candidate in facts.machine_types.values():
        if (
            candidate.series is None
            or candidate.type is None
            or candidate.arch != artefacts.ARCH
            or region not in (candidate.offered or ())
        ):
            continue
        size = candidate.type
        distance = (
            abs(size.gpus - original.gpus),
            (candidate.series.gpu and candidate.series.gpu.kind) != kind,
            bool(original.nvme) and not size.nvme,
            abs(size.vcpus - original.vcpus),
            abs(size.memory_gb - original.memory_gb),
        )
        best = min(best, (distance, candidate.name)) if best else (distance, candidate.name)
    return best[1] if best else ""


def _is_letter(cloud: Cloud, zone: str) -> bool:
    """Return whether a zone is named by a letter (us-east-1a), which means a different zone in each AWS account."""
    return cloud is Cloud.AWS and "-az" not in zone


def _alike(word: str, names: Iterable[str], most: int, least: float = 0) -> list[str]:
    """Return up to `most` names that share the most letters with a word, in any order: useast finds eastus."""
    letters = Counter(word.lower())
    shared = {name: 2 * (letters & Counter(name)).total() / (len(word) + len(name)) for name in names}
    return sorted((name for name in shared if shared[name] >= least), key=lambda name: (-shared[name], name))[:most]


def _zones(names: Sequence[str]) -> str:
    return f"zone{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _did_you_mean(best: list[str]) -> str:
    return f"; did you mean {' or '.join(best)}?" if best else ""


def unless_newer(hint: str, facts: Catalogue) -> str:
    """Add to a hint how to accept an entry that the catalogue lacks."""
    return f"{hint}; or pass --allow-unknown if it is newer than the catalogue ({facts.as_of})"


def _an(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


RULES: tuple[tuple[str, Rule], ...] = (
    ("CLD-001", known_region),
    ("CLD-001", known_zones),
    ("CLD-002", known_machine),
    ("CLD-003", offered),
    ("CLD-006", architecture),
)
