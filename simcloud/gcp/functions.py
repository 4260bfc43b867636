"""Functions of the provider `gcp`."""

from __future__ import annotations

from collections.abc import Mapping

from simcloud.identifiers import number
from simcloud.rules import Function, Offers, Settings
from simcloud.values import Properties
from simcloud.world import World


def _client(_: Properties, settings: Settings, __: Offers, ___: World) -> Properties:
    return {
        "id": f"projects/{settings.account}",
        "project": settings.account,
        "region": settings.region,
        "zone": settings.zone,
        "accessToken": "",
        "defaultLabels": dict(settings.tags),
    }


def _zones(arguments: Properties, settings: Settings, offers: Offers, _: World) -> Properties:
    region = arguments.get("region") or settings.region
    project = arguments.get("project") or settings.account
    return {
        "id": f"projects/{project}/regions/{region}",
        "names": list(offers.zones("gcp", region)),
        "project": project,
        "region": region,
    }


def _project(arguments: Properties, settings: Settings, _: Offers, __: World) -> Properties:
    project = arguments.get("projectId") or settings.account
    return {"id": f"projects/{project}", "projectId": project, "name": project, "number": number(project, 12)}


FUNCTIONS: Mapping[str, Function] = {
    "gcp:organizations/getClientConfig:getClientConfig": _client,
    "gcp:organizations/getProject:getProject": _project,
    "gcp:compute/getZones:getZones": _zones,
}
