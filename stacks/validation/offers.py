"""What the simulated clouds offer: the same as the real ones according to the catalogue, and what a new account has of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from cluster import catalogue
from cluster.fields import did_you_mean
from cluster.spec import Cloud
from sandbox.simcloud.rules import Offers, Place
from stacks.azure.permissions import FEATURES, resource_providers
from stacks.gcp.permissions import services as google_apis

_LINKED_ROLES = ("autoscaling", "ec2-nat-gateway", "elasticfilesystem", "elasticloadbalancing", "s2svpn", "spot")
_VAIN_USES = 2


@cache
def services(cloud: Cloud) -> frozenset[str]:
    """Return what docs/start/ has an administrator enable in a new account: the strict account has nothing else.

    AWS: services with a role of their own. Azure: resource providers and features. Google Cloud: APIs.
    """
    if cloud is Cloud.AZURE:
        return frozenset((*resource_providers(), *(f"Microsoft.Compute/{name}" for name in FEATURES)))
    if cloud is Cloud.GCP:
        return frozenset(google_apis())
    return frozenset(f"{name}.amazonaws.com" for name in _LINKED_ROLES)


def strict(offers: Offers) -> Offers:
    """Return what a new account has, where grants also take their time."""
    return replace(offers, services=lambda cloud, name: name in services(Cloud(cloud)), slow_grants=_VAIN_USES)


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
