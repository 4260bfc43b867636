"""Functions of the provider `aws`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from simcloud.identifiers import digest
from simcloud.rules import Function, Offers, Settings
from simcloud.values import Properties
from simcloud.world import World


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
    # Which physical zone a letter means differs between accounts; its id does not.
    ids = [f"{digest(region)[:4]}-az{i}" for i in range(1, len(names) + 1)]
    return {"id": region, "names": names, "zoneIds": ids, "groupNames": [region], "region": region}


def _image(arguments: Properties, settings: Settings, _: Offers, __: World) -> Properties:
    image = f"ami-0{digest(json.dumps(arguments, sort_keys=True) + settings.region)[:16]}"
    return {**arguments, "id": image, "imageId": image, "architecture": "x86_64", "region": settings.region}


FUNCTIONS: Mapping[str, Function] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:ec2/getAmi:getAmi": _image,
}
