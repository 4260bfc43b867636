"""Locations of Azure, as the catalogue has them ("Azure locations API")."""

from __future__ import annotations

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call


def known_location(call: Call) -> None:
    """Refuse a location that does not exist. Types without one, and global ones, have none to check."""
    location = call.region if "location" in call.type.where else ""
    if location not in ("", "global", *of(Cloud.AZURE).region_names):
        raise refused(
            "LocationNotAvailableForResourceType",
            f"The provided location '{location}' is not available for resource type '{call.type.noun}'.",
            "name a region of Azure, such as westeurope",
        )
