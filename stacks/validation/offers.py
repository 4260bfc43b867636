"""What the simulated clouds offer: the same as the real ones according to the catalogue."""

from __future__ import annotations

from collections.abc import Sequence

from cluster import catalogue
from cluster.fields import did_you_mean
from cluster.spec import Cloud
from sandbox.simcloud.rules import Offers, Place


def of_catalogue() -> Offers:
    """Return the regions, zones and machine types of cluster/catalogue/."""
    return Offers(_refuse, _zones)


def _zones(cloud: str, region: str) -> Sequence[str]:
    zones = catalogue.of(Cloud(cloud)).regions.zones.get(region)
    return zones or Offers().zones(cloud, region)


def _refuse(place: Place) -> str | None:
    """Return why a place does not exist, or None. Checks machines by region only; the spec's checks know zones better."""
    facts = catalogue.of(Cloud(place.cloud))
    if place.region not in facts.region_names:
        return f"there is no region {place.region}{did_you_mean(place.region, facts.region_names)}"
    if place.machine is None:
        return None
    machine = facts.machine_types.get(place.machine)
    if machine is None:
        return f"there is no machine type {place.machine}{did_you_mean(place.machine, facts.machine_types)}"
    if machine.offered is not None and place.region not in machine.offered:
        return f"{place.machine} is not offered in {place.region}"
    return None
