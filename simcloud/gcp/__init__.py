"""Google Cloud, as Compute Engine's API and the provider `gcp` behave."""

from __future__ import annotations

import json
from collections.abc import Mapping

from simcloud.gcp import compute, network
from simcloud.gcp.common import generic_type
from simcloud.gcp.functions import FUNCTIONS
from simcloud.gcp.words import SAYS
from simcloud.rules import Call, Cloud, Settings
from simcloud.values import Value


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
    if "region" in call.type.where:
        return call.text("region").rpartition("/")[2]
    if "zone" in call.type.where:
        return call.text("zone").rpartition("/")[2].rpartition("-")[0]
    return ""


CLOUD = Cloud(
    package="gcp",
    name="gcp",
    types={type_.token: type_ for type_ in (*network.TYPES, *compute.TYPES)},
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
