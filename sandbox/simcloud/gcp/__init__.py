"""Google Cloud: the behaviour of Compute Engine's API and of the provider `gcp`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from sandbox.simcloud.gcp import (
    compute,
    disks,
    dns,
    firewall,
    firewall_policy,
    groups,
    iam,
    kms,
    limits,
    load_balancing,
    network,
    routing,
    secrets,
    services,
    storage,
    vpn,
)
from sandbox.simcloud.gcp.common import generic_type
from sandbox.simcloud.gcp.functions import FUNCTIONS
from sandbox.simcloud.gcp.words import SAYS
from sandbox.simcloud.limits import limited
from sandbox.simcloud.rules import Call, Cloud, Settings
from sandbox.simcloud.values import Value

# Other locations are multi-regions such as EU, and global.
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")


def _configure(inputs: Mapping[str, Value]) -> Settings:
    defaults = inputs.get("defaultLabels") or "{}"
    return Settings(
        account=inputs.get("project") or "",
        region=inputs.get("region") or "",
        zone=inputs.get("zone") or "",
        tags=json.loads(defaults) if isinstance(defaults, str) else defaults,
    )


def _place_of(call: Call, name: str) -> str | None:
    settings = call.settings
    return {"project": settings.account, "region": settings.region, "zone": settings.zone}[name] or None


def _region_of(call: Call) -> str:
    """Return the region of a type that has one, or the location of keys and buckets if it is a region."""
    if "region" in call.type.where:
        return call.text("region").rpartition("/")[2]
    if "zone" in call.type.where or call.type.token == disks.ATTACHED:
        return disks.zone_of(call).rpartition("-")[0]
    places = (call.text("location"), call.text("keyRing").partition("/locations/")[2].partition("/")[0])
    return next((place.lower() for place in places if _REGION.fullmatch(place.lower())), "")


_MODULES = (
    *(network, firewall, firewall_policy, routing, vpn, load_balancing, compute, groups, disks),
    *(dns, kms, secrets, iam, storage),
)

CLOUD = Cloud(
    package="gcp",
    name="gcp",
    types={
        type_.token: limited(
            replace(type_, refuse=(services.enabled, *type_.refuse)),
            limits.LIMITS,
        )
        for module in _MODULES
        for type_ in module.TYPES
    },
    unruled=generic_type,
    says=SAYS,
    configure=_configure,
    place_of=_place_of,
    place_missing={
        "project": "Failed to retrieve project, pid: , err: project: required field is not set; set it with "
        "`pulumi config set gcp:project <project>`, on the provider or on the resource",
        "region": "Failed to retrieve region, pid: , err: region: required field is not set; set it with "
        "`pulumi config set gcp:region <region>`, on the provider or on the resource",
        "zone": "Failed to retrieve zone, pid: , err: zone: required field is not set; set it with "
        "`pulumi config set gcp:zone <zone>`, on the provider or on the resource",
    },
    region_of=_region_of,
    functions=FUNCTIONS,
    refers_by=("name",),
    suffix=("-", 7),
)
