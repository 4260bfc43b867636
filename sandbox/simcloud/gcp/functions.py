"""Functions of the provider `gcp`."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.simcloud.gcp.common import project_number
from sandbox.simcloud.identifiers import number
from sandbox.simcloud.rules import Function, Offers, RefusalError, Settings
from sandbox.simcloud.values import Properties
from sandbox.simcloud.world import World


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
    return {"id": f"projects/{project}", "projectId": project, "name": project, "number": project_number(project)}


def _storage_account(arguments: Properties, settings: Settings, _: Offers, __: World) -> Properties:
    project = arguments.get("project") or settings.account
    email = f"service-{project_number(project)}@gs-project-accounts.iam.gserviceaccount.com"
    return {"id": email, "emailAddress": email, "member": f"serviceAccount:{email}", "project": project}


def _image(arguments: Properties, settings: Settings, offers: Offers, __: World) -> Properties:
    """Return an image by name, or the one of a family. Each family has one image."""
    project, family = arguments.get("project") or settings.account, arguments.get("family") or ""
    name = arguments.get("name") or f"{family}-v20260101"
    if not (family or arguments.get("name")):
        raise RefusalError('one of `family,filter,name` must be specified; "filter" is not simulated: give a name')
    id_ = f"projects/{project}/global/images/{name}"
    asked = f"projects/{project}/global/images/{f'family/{family}' if family else name}"
    if not offers.images("gcp", settings.region, asked):
        raise RefusalError(
            f"Error retrieving image information: googleapi: Error 404: The resource '{asked}' was not found, notFound; "
            f"gcloud compute images list --project {project}"
        )
    return {
        "id": id_,
        "imageId": number(id_),
        "name": name,
        "family": family,
        "project": project,
        "selfLink": f"https://www.googleapis.com/compute/v1/{id_}",
        "diskSizeGb": 10,
        "status": "READY",
        "labels": {},
        "licenses": [],
    }


FUNCTIONS: Mapping[str, Function] = {
    "gcp:organizations/getClientConfig:getClientConfig": _client,
    "gcp:organizations/getProject:getProject": _project,
    "gcp:compute/getImage:getImage": _image,
    "gcp:compute/getZones:getZones": _zones,
    "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": _storage_account,
}
