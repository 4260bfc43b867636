"""Functions of the provider `aws`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sandbox.simcloud.aws.common import refused
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Function, Offers, Settings
from sandbox.simcloud.values import Properties, Secret
from sandbox.simcloud.world import World


def _identity(_: Properties, settings: Settings, __: Offers, ___: World) -> Properties:
    user = f"arn:aws:iam::{settings.account}:user/simcloud"
    return {"accountId": settings.account, "arn": user, "id": settings.account, "userId": "AIDASIMCLOUD"}


def _partition(_: Properties, __: Settings, ___: Offers, ____: World) -> Properties:
    return {"partition": "aws", "id": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def _region(arguments: Properties, settings: Settings, _: Offers, __: World) -> Properties:
    region = arguments.get("region") or settings.region
    return {
        "region": region,
        "name": region,
        "id": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
        "description": region,
    }


def _zones(arguments: Properties, settings: Settings, offers: Offers, _: World) -> Properties:
    region = arguments.get("region") or settings.region
    names = list(offers.zones("aws", region))
    # The physical zone behind a letter differs between accounts; the zone ID does not.
    ids = [f"{digest(region)[:4]}-az{i}" for i in range(1, len(names) + 1)]
    return {"id": region, "names": names, "zoneIds": ids, "groupNames": [region], "region": region}


def _image(arguments: Properties, settings: Settings, _: Offers, __: World) -> Properties:
    image = f"ami-0{digest(json.dumps(arguments, sort_keys=True) + settings.region)[:16]}"
    image_ids = [
        value
        for item in arguments.get("filters") or ()
        if item.get("name") == "image-id"
        for value in item.get("values") or ()
    ]
    chosen = image_ids[0] if image_ids else image
    return {
        **arguments,
        "id": chosen,
        "imageId": chosen,
        "architecture": "x86_64",
        "rootDeviceName": "/dev/xvda",
        "region": settings.region,
    }


# "Reference the latest AMIs using Systems Manager public parameters": everything below /aws/service is public.
_IMAGES = "/aws/service/"


def _parameter(arguments: Properties, settings: Settings, offers: Offers, __: World) -> Properties:
    """Return a public parameter with an image's ID; other parameters are not simulated."""
    name = str(arguments.get("name"))
    if not offers.images("aws", settings.region, name):
        raise refused("ParameterNotFound", f"reading SSM Parameter ({name})", f"{settings.region} has no such image")
    if not name.startswith(_IMAGES):
        raise refused("ParameterNotFound", f"reading SSM Parameter ({name})", f"only {_IMAGES}... is simulated", "name")
    value = f"ami-0{digest(name + settings.region)[:16]}"
    arn = f"arn:aws:ssm:{settings.region}::parameter{name}"
    return {
        **arguments,
        "id": name,
        "arn": arn,
        "type": "String",
        "value": Secret(value),
        "insecureValue": value,
        "version": 1,
        "region": settings.region,
    }


FUNCTIONS: Mapping[str, Function] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:ec2/getAmi:getAmi": _image,
    "aws:ssm/getParameter:getParameter": _parameter,
}
